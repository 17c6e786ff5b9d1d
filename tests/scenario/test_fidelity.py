# SPDX-License-Identifier: Apache-2.0
"""Readers get objects exactly as the server wrote them: the spelling of each number, the order of the keys."""

import json

import pytest

from harness import eventually
from harness.objects import ODD_VALUES, odd_widget
from harness.store import whole
from harness.exact_json import members, read


@pytest.fixture(scope="module")
def odd(shared):
    """(simulator, store): a cluster with one widget with all of ODD_VALUES."""
    simulator = shared.simulator()
    simulator.put("widgets", odd_widget())
    store = shared.store(simulator=simulator)
    store.start_synced(whole("widgets"))
    return simulator, store


def sent(simulator, key):
    """The object as the cluster has it."""
    return read(simulator.truth_text("widgets", key))[1][0]


def spec_of(text):
    return dict(members(dict(members(read(text)))["spec"]))


@pytest.mark.parametrize("key", [key for key, _ in ODD_VALUES])
def test_each_value_comes_back_as_it_was_sent(odd, key):
    """Compares numbers by their spelling, strings by their characters, and maps with the order of their keys."""
    _, store = odd
    got = spec_of(store.kinf("get", "widgets", "web/odd", "-o", "json", "--server-order", check=True).stdout)[key]
    assert got == read(dict(ODD_VALUES)[key])


def test_keys_keep_their_order(odd):
    simulator, store = odd
    got = read(store.kinf("get", "widgets", "odd", "-n", "web", "-o", "json", "--server-order", check=True).stdout)
    assert got == sent(simulator, "web/odd")


def test_lists_and_events_print_the_object_as_get_does(odd):
    simulator, store = odd
    truth = sent(simulator, "web/odd")
    listed = read(store.kinf("get", "widgets", "--prefix", "odd", "-o", "json", "--server-order", check=True).stdout)
    assert dict(members(listed))["items"] == ("list", [truth])
    event = read(store.kinf("watch", "widgets", "--prefix", "odd", "-o", "json", "--count", "1", check=True).stdout)
    assert dict(members(event))["object"] == truth


def test_yaml_output_parses_to_the_same_object(odd):
    import yaml

    simulator, store = odd
    values = [(k, t) for k, t in ODD_VALUES if k not in ("huge", "escapes")]
    simulator.put("widgets", odd_widget("plain", values=values))
    eventually(lambda: "web/plain" in store.objects("widgets"))
    text = store.kinf("get", "widgets", "web/plain", "-o", "yaml", "--server-order", check=True).stdout
    got, truth = yaml.safe_load(text), simulator.truth("widgets")["web/plain"]
    # YAML 1.1 reads an exponent without a decimal point as a string; all other values must be equal.
    for key, spelling in (("exponent", "1E5"), ("small", "1e-7")):
        assert str(got["spec"].pop(key)) in (spelling, str(truth["spec"][key])) and truth["spec"].pop(key)
    assert got == truth
    assert list(got["spec"]) == list(truth["spec"])


def test_c69_strings_of_all_unicode_planes_come_back(odd):
    simulator, store = odd
    text = "".join(map(chr, [*range(1, 0x80), 0xFF, 0x2028, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x10FFFF]))
    simulator.put("widgets", {**json.loads(odd_widget("strings")), "spec": {text: text}})
    found = eventually(lambda: store.objects("widgets").get("web/strings"))
    assert found["spec"] == {text: text}


def test_an_object_nested_a_hundred_levels_deep_comes_back(odd):
    simulator, store = odd
    deep = '{"a":[' * 50 + "1.0" + "]}" * 50
    simulator.put("widgets", odd_widget("deep", values=[("deep", deep)]))
    eventually(lambda: "web/deep" in store.objects("widgets"))
    assert spec_of(store.kinf("get", "widgets", "web/deep", "-o", "json", "--server-order", check=True).stdout)["deep"] == read(deep)


def test_a_change_of_a_numbers_spelling_is_stored(odd):
    simulator, store = odd
    simulator.put("widgets", odd_widget("number", values=[("n", "1.0")]))
    eventually(lambda: "web/number" in store.objects("widgets"))
    simulator.put("widgets", odd_widget("number", values=[("n", "1.00")]))
    get = lambda: spec_of(store.kinf("get", "widgets", "web/number", "-o", "json", "--server-order", check=True).stdout)["n"]
    eventually(lambda: get() == ("number", "1.00"))


@pytest.mark.parametrize("key, value", [("int64-max", "9223372036854775807"), ("float", "1.0"), ("beyond", "12345678901234567890123")])
def test_field_selectors_compare_the_spelling_of_numbers(odd, key, value):
    _, store = odd
    assert "web/odd" in store.objects("widgets", "--field-selector", f"spec.{key}={value}")
    assert "web/odd" not in store.objects("widgets", "--field-selector", f"spec.{key}={value}0")
