# SPDX-License-Identifier: Apache-2.0
"""The watch of the Python client library, as its examples have it: lists, watches, comes back.
Prints a JSON line for each event and for each list; check_clients.py runs it with an interpreter
with the library. usage: python_client.py KUBECONFIG"""

import json
import sys
import time

import urllib3
from kubernetes import client, config, watch


def say(**what):
    print(json.dumps(what), flush=True)


def main(kubeconfig):
    config.load_kube_config(kubeconfig)
    api = client.CoreV1Api()
    listed = None
    while True:
        try:
            if listed is None:
                found = api.list_config_map_for_all_namespaces()
                listed = found.metadata.resource_version
                say(list={f"{i.metadata.namespace}/{i.metadata.name}": i.metadata.resource_version for i in found.items})
            events = watch.Watch()
            for event in events.stream(api.list_config_map_for_all_namespaces, resource_version=listed, allow_watch_bookmarks=True):
                metadata = event["object"].metadata
                listed = metadata.resource_version
                if event["type"] != "BOOKMARK":
                    say(type=event["type"], key=f"{metadata.namespace}/{metadata.name}", rv=listed)
        except client.ApiException as error:
            say(error=error.status)
            listed = None if error.status == 410 else listed
            time.sleep(0.1)
        except (urllib3.exceptions.HTTPError, OSError) as error:
            say(cut=type(error).__name__)
            time.sleep(0.1)


main(sys.argv[1])
