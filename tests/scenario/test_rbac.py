# SPDX-License-Identifier: Apache-2.0
"""kinf config rbac: the rights needed by a configuration's feeds, in a form for kubectl apply."""

import yaml
import pytest

from harness.process import ROOT, program, run_command

READ = ["get", "list", "watch"]
IDENTITY = {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]}
COLUMNS = {"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["get"]}


@pytest.fixture
def rbac(tmp_path):
    """rbac(FEEDS, OPTION..., key=value...): the result of the command for a kinf.yaml."""

    def run(feeds, *options, env=None, **settings):
        file = tmp_path / "kinf.yaml"
        file.write_text(yaml.safe_dump({**settings, "store": str(tmp_path / "store"), "feeds": feeds}))
        return run_command([program("kinf"), "config", "rbac", *options, file], {"KINF_STORE": "", **(env or {})})

    return run


def objects(result):
    assert result.status == 0 and not result.stderr, result
    found = list(yaml.safe_load_all(result.stdout))
    assert {o["apiVersion"] for o in found} == {"rbac.authorization.k8s.io/v1"}
    return {(o["kind"], o["metadata"].get("namespace", ""), o["metadata"]["name"]): o for o in found}


def rules(result, kind="ClusterRole", namespace="", name="kinf"):
    return objects(result)[kind, namespace, name]["rules"]


def test_the_default_account_gets_one_rule_for_each_group(rbac):
    result = rbac([{"resource": r} for r in ("pods", "deployments.apps", "nodes", "statefulsets.v1.apps")])
    assert rules(result) == [
        {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": READ},
        {"apiGroups": ["apps"], "resources": ["deployments", "statefulsets"], "verbs": READ},
        IDENTITY,
    ]
    assert list(objects(result)) == [("ClusterRole", "", "kinf"), ("ClusterRoleBinding", "", "kinf")]
    binding = objects(result)["ClusterRoleBinding", "", "kinf"]
    assert binding["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "kinf"}
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "kinf", "namespace": "kinf-system"}]


@pytest.mark.parametrize("name, group, resource", [
    ("po", "", "pods"), ("Deployment", "apps", "deployments"), ("hpa", "autoscaling", "horizontalpodautoscalers"),
    ("ev", "", "events"), ("events.events.k8s.io", "events.k8s.io", "events"), ("pods.v1", "", "pods"),
    ("pods.metrics.k8s.io", "metrics.k8s.io", "pods"), ("Widgets.v1beta2.example.com", "example.com", "widgets"),
    ("crd", "apiextensions.k8s.io", "customresourcedefinitions"), ("v1s.v1alpha.example.com", "v1alpha.example.com", "v1s"),
])  # fmt: skip
def test_names_are_found_as_the_reflector_finds_them(rbac, name, group, resource):
    assert {"apiGroups": [group], "resources": [resource], "verbs": READ} in rules(rbac([{"resource": name}]))


def test_feeds_of_namespaces_need_a_role_in_each(rbac):
    feeds = [{"resource": "pods", "namespaces": ["web", "shop"]}, {"resource": "secrets", "namespaces": ["shop"]},
             {"resource": "services"}, {"resource": "services", "name": "more", "namespaces": ["web"]}]
    result = rbac(feeds, "--name", "agent", "-n", "tools", "--service-account", "agent.1")
    assert rules(result, name="agent") == [{"apiGroups": [""], "resources": ["services"], "verbs": READ}, IDENTITY]
    assert rules(result, "Role", "shop", "agent") == [{"apiGroups": [""], "resources": ["pods", "secrets"], "verbs": READ}]
    assert rules(result, "Role", "web", "agent") == [{"apiGroups": [""], "resources": ["pods"], "verbs": READ}]
    for namespace in ("", "shop", "web"):
        binding = objects(result)["RoleBinding" if namespace else "ClusterRoleBinding", namespace, "agent"]
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "agent.1", "namespace": "tools"}]
        assert binding["roleRef"]["kind"] == ("Role" if namespace else "ClusterRole")
    assert len(objects(result)) == 6


def test_one_object_is_named_and_other_selectors_are_not(rbac):
    result = rbac([{"resource": "configmaps", "namespaces": ["web"], "fieldSelector": "metadata.name=settings"},
                   {"resource": "pods", "fieldSelector": "spec.nodeName=n1"}, {"resource": "nodes", "labelSelector": "a=b"}])
    assert rules(result, "Role", "web") == [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["settings"], "verbs": READ}]
    assert rules(result)[0] == {"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": READ}
    assert result.stdout.count("# All objects: a rule can't have the selectors of the feeds.") == 1


@pytest.mark.parametrize("name, group", [("*", "*"), ("all", "*"), ("*.apps", "apps"), ("*.v1.apps", "apps"), ("*.v1", "")])
def test_a_wildcard_gets_no_right_that_runs_commands(rbac, name, group):
    """get of every resource includes pods/exec and nodes/proxy."""
    result = rbac([{"resource": name, "exclude": ["secrets"]}, {"resource": "pods"}])
    assert {"apiGroups": [group], "resources": ["*"], "verbs": ["list", "watch"]} in rules(result)
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": READ} in rules(result)
    assert IDENTITY in rules(result) and COLUMNS in rules(result)
    assert "a rule can't leave out those in 'exclude'" in result.stdout


def test_what_a_rule_gives_is_not_asked_for_again(rbac):
    given = rules(rbac([{"resource": "ns"}, {"resource": "crd"}, {"resource": "widgets.example.com"}, {"resource": "namespaces"}]))
    assert [r["resources"] for r in given] == [["namespaces"], ["customresourcedefinitions"], ["widgets"]]


def test_a_user_and_a_group_are_quoted(rbac):
    name = 'yes: "\\\n#'
    result = rbac([{"resource": "pods"}], "--user", name, "--group", "1e3", "--name", "no")
    binding = objects(result)["ClusterRoleBinding", "", "no"]
    assert binding["subjects"] == [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name},
                                   {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "1e3"}]


def test_reviews_need_the_delegator(rbac):
    serve = {"auth": "review"}
    result = rbac([{"resource": "pods"}], serve=serve)
    assert objects(result)["ClusterRoleBinding", "", "kinf-reviews"]["roleRef"]["name"] == "system:auth-delegator"
    assert len(objects(rbac([{"resource": "pods"}], serve={**serve, "review": {"tokenFile": "/t"}}))) == 2


def test_the_command_line_names_feeds_as_well():
    result = run_command([program("kinf"), "config", "rbac", "--config", "/dev/null", "--watch", "pods(-n web)"], {"KINF_STORE": ""})
    assert rules(result, "Role", "web") == [{"apiGroups": [""], "resources": ["pods"], "verbs": READ}]


def test_a_store_knows_the_groups_of_custom_resources(simulator, store):
    store.start_live("wd")
    given = rules(store.kinf("config", "rbac"))
    assert given == [{"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": READ}, IDENTITY, COLUMNS]


def test_an_unknown_resource_is_an_error_that_says_how_to_write_it(rbac):
    result = rbac([{"resource": "pods"}, {"resource": "wd"}])
    assert result.status == 1 and not result.stdout, result
    assert result.stderr.startswith("Error: the group of 'wd' is not known: ") and "widgets.example.com" in result.stderr


@pytest.mark.parametrize("options, says", [
    (["--user", "u", "-n", "web"], "leave out --namespace"), (["--nme", "x"], "--nme"),
])  # fmt: skip
def test_bad_options_are_usage_errors(rbac, options, says):
    result = rbac([{"resource": "pods"}], *options)
    assert result.status == 2 and says in result.stderr and not result.stdout, result


def test_options_of_rbac_do_not_belong_to_check(tmp_path):
    (tmp_path / "k.yaml").write_text("feeds: [{resource: pods}]\n")
    result = run_command([program("kinf"), "config", "check", tmp_path / "k.yaml", "--name", "x"])
    assert result.status == 2 and "kinf config rbac" in result.stderr, result


def test_the_rights_of_the_manifests_are_those_of_their_feeds():
    manifests = ROOT / "packaging/kubernetes"
    for name in ("base", "serve"):
        result = run_command([program("kinf"), "config", "rbac", manifests / name / "kinf.yaml"], {"NODE_NAME": "node"})
        assert result.stdout == (manifests / "base/rbac.yaml").read_text(), result
