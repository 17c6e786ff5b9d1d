# SPDX-License-Identifier: Apache-2.0
"""Random jsonpath templates for check_jsonpath.py: filters, unions, slices, '..', ranges, quotes
and mistakes in all of them."""

import random

FIELDS = """metadata spec status name namespace labels app containers image phase conditions type nothing restartCount ready
containerStatuses tolerations tolerationSeconds priority hostIP annotations ports containerPort startTime uid ownerReferences kind
controller""".split()
OF_OBJECT = r""".metadata.name .metadata.namespace .spec.nodeName .status.phase .spec.containers .spec.containers[*].name
.spec.containers[*].image .spec.containers[0].image .spec.containers[0].ports .metadata.labels .metadata.labels.app
.status.conditions[*].type .status.containerStatuses[*].restartCount .status.containerStatuses[*].ready
.spec.tolerations[*].tolerationSeconds .metadata.nothing .metadata.annotations .spec.priority
.spec.containers[*].resources.limits.memory .spec.volumes[*].projected .metadata.ownerReferences[0].controller
.metadata.labels.app\.kubernetes\.io/name .spec.containers[*].ports[*].containerPort .spec .status.startTime""".split()
OF_LIST = [".items", ".kind", ".apiVersion", "", "@", "$"]
TEXTS = ["", " ", "\\n", "a", '{"\\n"}', "{'\\t'}", '{"x\\"y"}', "{3}", "{true}", "{-1.5}", "}", "{", "{end}", "é", '{"\\u00e9"}', "{'a}b'}", "{ 'x' }",
         "{'\\q'}"]  # fmt: skip
CONSTANTS = ["0", "1", "3.5", "-1", "true", "false", '"Running"', "'Ready'", '"istio-proxy"', '"a)b"', '"x y"', '""', "''", "'1'", '"True"',
             "300", "'open", "word"]  # fmt: skip
INDEXES = ["0", "1", "-1", "-2", "100", "-100", "0:2", "1:", ":1", ":-1", "-2:-1", "::2", "0:7:2", "1:2:3", ":", "2:1", "a", "1.5", "0:1:2:3"]
OPERATORS = ["==", "==", "==", "!=", "!=", "<", ">", "<=", ">=", "=~", "="]


class Templates:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *from_):
        return self.random.choice(from_)

    def weighed(self, *pairs):
        weights, makers = zip(*pairs)
        return self.random.choices(makers, weights)[0]()

    def union(self):
        member = lambda: self.pick(f"'{self.pick(*FIELDS)}'", self.pick("0", "-1", "2"), "'metadata.name'", "'status.phase'", "*", ":1", f" '{self.pick(*FIELDS)}' ")
        return "[" + ",".join(member() for _ in range(self.random.randint(2, 3))) + "]"

    def operand(self):
        return self.weighed((8, lambda: "@" + self.pick(*OF_OBJECT)), (6, lambda: "@." + self.pick(*FIELDS)), (3, lambda: "@"), (1, lambda: self.pick(*CONSTANTS)),
                            (1, lambda: "@" + self.steps(False)))  # fmt: skip

    def filter(self):
        blank = self.pick("", "", "", " ")
        if self.random.random() < 0.15:
            return f"[?({blank}{self.operand()}{blank})]"
        right = self.operand() if self.random.random() < 0.2 else self.pick(*CONSTANTS)
        return f"[?({blank}{self.operand()}{blank}{self.pick(*OPERATORS)}{blank}{right}{blank})]"

    def steps(self, filters=True):
        step = lambda: self.weighed((10, lambda: "." + self.pick(*FIELDS)), (3, lambda: f"[{self.pick(*INDEXES)}]"), (3, lambda: "[*]"), (1, lambda: ".*"), (1, lambda: ".."),
                                    (1, lambda: ".." + self.pick(*FIELDS)), (2, lambda: f"['{self.pick(*FIELDS)}']"), (2, self.union),
                                    (2 if filters else 0, self.filter), (1, lambda: " "))  # fmt: skip
        return "".join(step() for _ in range(self.random.randint(1, 4)))

    def target(self):
        return self.weighed((6, lambda: ".items[*]" + self.pick(*OF_OBJECT)), (10, lambda: ".items" + self.filter() + self.pick(*OF_OBJECT)), (6, lambda: ".items[*]" + self.steps()),
                            (2, lambda: self.pick(*OF_LIST)), (3, self.steps), (4, lambda: f".items[{self.pick(*INDEXES)}]" + self.pick(*OF_OBJECT)),
                            (5, lambda: ".items[*].spec.containers" + self.filter() + self.pick(".name", ".image", "")),
                            (4, lambda: ".items[*].status.conditions" + self.filter() + self.pick(".type", ".status", "")), (3, lambda: ".items" + self.steps()),
                            (2, lambda: ".." + self.pick(*FIELDS)), (2, lambda: ".items[*].metadata" + self.union()), (3, lambda: ".items[0]" + self.steps()))  # fmt: skip

    def inner(self, depth):
        if self.random.random() < 0.2 and depth < 3:
            over = self.pick(".spec.containers[*]", ".status.conditions[*]", "@" + self.pick(*OF_OBJECT), ".nothing[*]")
            return "{range " + over + "}" + self.pick("{.name}", "{@}", "{.type} ", "x") + "{end}"
        return "{" + self.pick("", "@", "$") + self.pick(*OF_OBJECT) + "}"

    def action(self):
        if self.random.random() < 0.15:
            parts = (self.inner(1) if self.random.random() < 0.6 else self.pick(*TEXTS) for _ in range(self.random.randint(1, 3)))
            return "{range " + self.target() + "}" + "".join(parts) + self.pick("{end}", "{end}", "{end}", "{ end }", "", "{end}{end}")
        blank = self.pick("", "", "", " ")
        return "{" + blank + self.target() + blank + "}"

    def template(self):
        return "".join(self.pick(self.action, self.action, lambda: self.pick(*TEXTS))() for _ in range(self.random.randint(1, 3)))

    def some(self, n):
        """N different templates, possible as arguments."""
        found = {}
        while len(found) < n:
            found.setdefault(self.template())
            found.pop("", None)
        return list(found)
