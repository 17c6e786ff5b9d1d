# SPDX-License-Identifier: Apache-2.0
"""Descriptions of objects by kinf and kubectl, in a comparable form."""

import re

AGE = re.compile(r"(?<![\w.:/-])(\d+[smhdy]){1,2}(?![\w.:/-])")

# kinf has the layout of kubectl 1.37. An older one prints some lines otherwise, or not at all, and
# has no value of a variable from a field of the spec; neither do kinf's texts have newlines of an
# object.
OLDER = [
    (r"^( *)(?:Host )?Ports?:.*", lambda m: re.sub(r" \([a-z0-9-]+\)", "", m.group(0))),  # names of ports
    (r"^ +(?:SecretOptionalName|ConfigMapOptional|Optional): .*", ""),
    (r"(:) +\S* ?(\(v1:(?:spec|status|metadata\.labels))", r"\1 \2"),
    (r" spec\.\w+\{[^}]*\}: ", " "),  # of the event's container
    (r"^(?:Namespace|Time Zone|AppProtocol|Mountable secrets|Tokens):.*", ""),
    (r" \(not found\)$", ""),
    (r"^( *Message: ).*", r"\1"),
    (r" #success=(\d+) #failure=", r" successThreshold=\1 failureThreshold="),
    (r"^(?:Service Name|Pod Management Policy|Persistent Volume Claim Retention Policy|  WhenDeleted|  WhenScaled):.*", ""),
]


def comparable(text):
    """The part of `kinf describe` in kubectl's output too: without the history below it."""
    return text.partition("\nHistory:\n")[0].rstrip("\n") + "\n" if "\nHistory:\n" in text else text


def ageless(text):
    """Lines without their changing ages, and with a single blank for the blanks after them."""
    return [re.sub(r" +", " ", AGE.sub("AGE", line)).rstrip() for line in text.splitlines()]


def essential(text):
    """Lines without ages, and without the differences of older versions of kubectl."""
    lines = text.replace("Started container\n", "Started container").splitlines()
    for pattern, replacement in OLDER:
        lines = [re.sub(pattern, replacement, line) for line in lines]
    lines = [line for line in ageless("\n".join(lines)) if line and line != " Kube-Proxy Version:"]
    return sorted(lines) if "Data" in lines else lines  # older ones print data in any order
