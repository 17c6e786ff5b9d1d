# SPDX-License-Identifier: Apache-2.0
"""harness/exact_json.py: equal and different texts."""

import pytest

from harness.exact_json import first_difference, read


@pytest.mark.parametrize(
    "one, other",
    [("1.0", "1"), ("1.0", "1.00"), ("-0.0", "0.0"), ("1E5", "100000"), ("9223372036854775807", "9223372036854775806"),
     ('"1"', "1"), ("null", '""'), ("null", "{}"), ("{}", "[]"), ("true", "1"), ('{"a":1,"b":2}', '{"b":2,"a":1}'),
     ('{"a":1}', '{"a":1,"a":1}'), ("[1,2]", "[2,1]"), ("[]", "[null]"), ('{"a":null}', "{}")],
)
def test_different_values_compare_as_different(one, other):
    assert read(one) != read(other)
    assert first_difference(read(f'{{"x":[{one}]}}'), read(f'{{"x":[{other}]}}')).startswith("$.x[0]")
    assert first_difference(read(one), read(one)) is None


def test_spacing_and_escapes_are_ignored():
    assert read(' {"a" : [ 1.0 ,"\\u00e9\\/"] }\n') == read('{"a":[1.0,"é/"]}')
