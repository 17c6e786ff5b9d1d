// SPDX-License-Identifier: Apache-2.0

// The informer of @kubernetes/client-node for ConfigMaps, as its README has it: lists, watches, and begins again after an
// error. Prints a JSON line for each event. usage: node client.mjs KUBECONFIG
import { CoreV1Api, KubeConfig, makeInformer } from '@kubernetes/client-node';

const say = (what) => console.log(JSON.stringify(what));
const key = (object) => `${object.metadata.namespace}/${object.metadata.name}`;

const config = new KubeConfig();
config.loadFromFile(process.argv[2]);
const api = config.makeApiClient(CoreV1Api);
const informer = makeInformer(config, '/api/v1/configmaps', () => api.listConfigMapForAllNamespaces());

informer.on('add', (object) => say({ type: 'ADDED', key: key(object), rv: object.metadata.resourceVersion }));
informer.on('update', (object) => say({ type: 'MODIFIED', key: key(object), rv: object.metadata.resourceVersion }));
informer.on('delete', (object) => say({ type: 'DELETED', key: key(object) }));

function begin() {
    informer.start().catch(failed);
}
function failed(error) {
    const code = error?.statusCode ?? error?.code;
    say(Number.isInteger(code) ? { error: code } : { cut: String(error?.message ?? error).slice(0, 200) });
    setTimeout(begin, 100);
}
informer.on('error', failed);
begin();
