# SPDX-License-Identifier: Apache-2.0
"""Certificate authorities for tests, made with the openssl command."""

import subprocess
from pathlib import Path

# Replaces the system's openssl.cnf, which would add extensions to each certificate.
CONFIG = "[req]\ndistinguished_name = name\n[name]\n"


class Authority:
    """A CA; `ca` is the file of its certificate."""

    def __init__(self, directory, name):
        self.directory, self.name = Path(directory), name
        (self.directory / "openssl.cnf").write_text(CONFIG)
        self.ca, self.key = self._make(name, "basicConstraints=critical,CA:TRUE")

    def _make(self, name, *extensions, organizations=(), more=()):
        certificate, key = (self.directory / f"{self.name}-{name}.{end}" for end in ("crt", "key"))
        subprocess.run(
            ["openssl", "req", "-x509", "-config", self.directory / "openssl.cnf", "-days", "2", "-nodes",
             "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", f"/CN={name}" + "".join(f"/O={o}" for o in organizations), *more,
             *(word for extension in extensions for word in ("-addext", extension)),
             "-out", certificate, "-keyout", key],
            check=True, capture_output=True,
        )
        return certificate, key

    def issue(self, name, *alternatives, organizations=()):
        """(certificate, key): files for the subject NAME. ALTERNATIVES: subjectAltNames such as "IP:127.0.0.1"."""
        extensions = [f"subjectAltName={','.join(alternatives)}"] if alternatives else []
        return self._make(name, *extensions, organizations=organizations, more=("-CA", self.ca, "-CAkey", self.key))
