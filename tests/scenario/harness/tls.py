# SPDX-License-Identifier: Apache-2.0
"""Certificate authorities for tests, made with the openssl command."""

import subprocess
import time
from pathlib import Path

# Replaces the system's openssl.cnf, since it would add extensions to each certificate.
CONFIG = "[req]\ndistinguished_name = name\n[name]\n"


class Authority:
    """A CA; `ca` is the file of its certificate."""

    def __init__(self, directory, name):
        self.directory, self.name = Path(directory), name
        (self.directory / "openssl.cnf").write_text(CONFIG)
        self.ca, self.key = self._make(name, "basicConstraints=critical,CA:TRUE")

    def _make(self, name, *extensions, organizations=(), more=()):
        certificate, key = (self.directory / f"{self.name}-{name.replace('/', '-')}.{end}" for end in ("crt", "key"))
        subprocess.run(
            ["openssl", "req", "-x509", "-config", self.directory / "openssl.cnf", "-days", "2", "-nodes",
             "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-subj", f"/CN={name}" + "".join(f"/O={o}" for o in organizations), *more,
             *(word for extension in extensions for word in ("-addext", extension)),
             "-out", certificate, "-keyout", key],
            check=True, capture_output=True,
        )
        return certificate, key

    def issue_for(self, seconds, name):
        """As issue(), of a certificate expiring after SECONDS."""
        certificate, key = (self.directory / f"{self.name}-{name}.{end}" for end in ("crt", "key"))
        request, index = self.directory / f"{name}.csr", self.directory / f"{name}.index"
        config = self.directory / "openssl-ca.cnf"
        config.write_text(f"[ca]\ndefault_ca=a\n[a]\ndatabase={index}\nnew_certs_dir={self.directory}\nrand_serial=yes\n"
                          "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")
        index.write_text("")
        until = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))
        for words in (["req", "-new", "-config", self.directory / "openssl.cnf", "-nodes", "-newkey", "ec", "-pkeyopt",
                       "ec_paramgen_curve:P-256", "-subj", f"/CN={name}", "-keyout", key, "-out", request],
                      ["ca", "-batch", "-notext", "-config", config, "-cert", self.ca, "-keyfile", self.key, "-in", request,
                       "-startdate", "20200101000000Z", "-enddate", until, "-out", certificate]):
            subprocess.run(["openssl", *words], check=True, capture_output=True)
        return certificate, key

    def issue(self, name, *alternatives, organizations=()):
        """(certificate, key): files for the subject NAME. ALTERNATIVES: subjectAltNames such as "IP:127.0.0.1"."""
        extensions = [f"subjectAltName={','.join(alternatives)}"] if alternatives else []
        return self._make(name, *extensions, organizations=organizations, more=("-CA", self.ca, "-CAkey", self.key))
