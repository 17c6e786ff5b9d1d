/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/simulator/lifelike.h"

enum pod_state {
	RUNNING,
	NOT_READY,
	RESTARTED, /* ran out of memory once */
	CRASH_LOOP,
	COMPLETED,
	FAILED,
	EVICTED,
	IMAGE_PULL,
	CREATING,
	INITIALIZING,
	UNSCHEDULABLE,
	TERMINATING,
	LOST, /* its node is away */
};

/* The states of forty pods in a row; the others run. */
static const uint8_t pod_states[40] = {
	[0] = UNSCHEDULABLE,
	[3] = CRASH_LOOP,
	[5] = COMPLETED,
	[7] = TERMINATING,
	[9] = IMAGE_PULL,
	[12] = INITIALIZING,
	[14] = FAILED,
	[17] = NOT_READY,
	[18] = EVICTED,
	[22] = RESTARTED,
	[25] = COMPLETED,
	[27] = CREATING,
	[31] = LOST,
	[34] = CRASH_LOOP,
	[35] = COMPLETED,
};

/* The state of a container: running, waiting for a reason, or terminated with a code. */
struct pod_look {
	enum { LOOK_RUNNING, LOOK_WAITING, LOOK_TERMINATED } how;
	const char *reason, *message;
	unsigned code;
};

/* How pods look: their phase, the first container, and the others. */
static const struct {
	const char *phase;
	struct pod_look first, others;
} pod_looks[] = {
	[RUNNING] = {"Running"},
	[NOT_READY] = {"Running"},
	[RESTARTED] = {"Running"},
	[CRASH_LOOP] = {"Running", {LOOK_WAITING, "CrashLoopBackOff",
					   "back-off 5m0s restarting failed container=main"}},
	[COMPLETED] = {"Succeeded", {LOOK_TERMINATED, "Completed"}, {LOOK_TERMINATED, "Completed"}},
	[FAILED] = {"Failed", {LOOK_TERMINATED, "Error", .code = 1},
		{LOOK_TERMINATED, "Error", .code = 143}},
	[EVICTED] = {"Failed"},
	[IMAGE_PULL] = {"Pending",
		{LOOK_WAITING, "ImagePullBackOff",
			"Back-off pulling image \\\"registry.example.com/none:1\\\""}},
	[CREATING] = {"Pending", {LOOK_WAITING, "ContainerCreating"},
		{LOOK_WAITING, "ContainerCreating"}},
	[INITIALIZING] = {"Pending", {LOOK_WAITING, "PodInitializing"},
		{LOOK_WAITING, "PodInitializing"}},
	[UNSCHEDULABLE] = {"Pending"},
	[TERMINATING] = {"Running"},
	[LOST] = {"Running"},
};

struct pod {
	struct draft *draft;
	struct mix *mix;
	enum pod_state state;
	uint64_t n, app;
	unsigned n_containers, n_init;
	bool job;
	bool bare;    /* made by hand: no owner, little else */
	bool sidecar; /* the first init container is one */
	char owner[64];
};

static const char *const containers[] = {
	"main", "mesh-proxy", "log-shipper", "config-reloader", "metrics", "vault-agent", "cache"};
static const char *const init_containers[] = {"istio-init", "migrate", "wait-for-db"};

static void pod_put_image(struct pod *pod, const char *name)
{
	if (!strcmp(name, "main"))
		mix_put(pod->mix, "registry.example.com/team-%u/app-%u:1.%u.0",
			(unsigned)(pod->app % 8), (unsigned)pod->app, (unsigned)(pod->n % 7));
	else if (!strcmp(name, "cache"))
		mix_put(pod->mix,
			"docker.io/library/redis@sha256:"
			"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	else
		mix_put(pod->mix, "registry.example.com/platform/%s:v3.1.9", name);
}

/* ---- metadata ----------------------------------------------------------- */

static void pod_own(struct pod *pod)
{
	static const char *const kinds[] = {"ReplicaSet", "ReplicaSet", "ReplicaSet", "StatefulSet",
		"DaemonSet", "ReplicaSet", "Workflow"};
	const char *kind = pod->job ? "Job" : MIX_PICK(pod->mix, kinds), *api = "apps/v1";

	if (pod->job)
		api = "batch/v1";
	else if (!strcmp(kind, "Workflow"))
		api = "argoproj.io/v1alpha1";
	(void)snprintf(pod->owner, sizeof(pod->owner), "app-%" PRIu64 "%s", pod->app, "");
	if (!strcmp(kind, "ReplicaSet"))
		(void)snprintf(pod->owner, sizeof(pod->owner), "app-%" PRIu64 "-5d%04" PRIx64,
			pod->app, pod->app);
	if (!pod->bare)
		draft_put_owner(pod->draft, api, kind, pod->owner);
}

static void pod_label(struct pod *pod)
{
	uint64_t app = pod->app, n = pod->n;

	pod->mix = draft_begin(pod->draft, &pod->draft->labels);
	mix_put(pod->mix, "'app':'app-%" PRIu64 "','app.kubernetes.io/component':'%s',", app,
		n % 2 ? "server" : "worker");
	mix_put(pod->mix, "'app.kubernetes.io/instance':'app-%" PRIu64 "-prod',", app);
	mix_put(pod->mix,
		"'app.kubernetes.io/managed-by':'Helm',"
		"'app.kubernetes.io/name':'app-%" PRIu64 "',",
		app);
	mix_put(pod->mix, "'app.kubernetes.io/version':'1.%" PRIu64 ".0',", n % 7);
	if (pod->job)
		mix_put(pod->mix, "'batch.kubernetes.io/job-name':'app-%" PRIu64 "',", app);
	if (n % 3 == 1)
		mix_put(pod->mix, "'helm.sh/chart':'app-%" PRIu64 "-4.12.%" PRIu64 "','istio':'',",
			app, n % 9);
	mix_put(pod->mix, "'pod-template-hash':'5d%04" PRIx64 "','tier':'%s'", app,
		n % 3 ? "back" : "front");
}

/* Annotations: few pods have large ones, as operators leave them. */
static void pod_annotate(struct pod *pod)
{
	size_t size = pod->n % 200 == 61  ? 200000
		      : pod->n % 40 == 21 ? mix_size(pod->mix, 8000, 40000)
					  : 0;

	pod->mix = draft_begin(pod->draft, &pod->draft->annotations);
	mix_put(pod->mix, "'checksum/config':'");
	mix_hex(pod->mix, 64);
	mix_put(pod->mix, "'");
	if (pod->n % 4 == 1) {
		mix_put(pod->mix, ",'cni.projectcalico.org/podIP':'10.244.%u.7/32'",
			(unsigned)(pod->n % 250));
		mix_put(pod->mix,
			",'kubectl.kubernetes.io/restartedAt':'2026-03-01T12:00:00+01:00'");
	}
	if (size) {
		mix_put(pod->mix, ",'operator.example.com/rendered':'");
		mix_settings(pod->mix, size);
		mix_put(pod->mix, "'");
	}
	mix_put(pod->mix, ",'prometheus.io/path':'/metrics','prometheus.io/port':'8080',"
			  "'prometheus.io/scrape':'true'");
}

/* ---- spec --------------------------------------------------------------- */

static void pod_put_env(struct pod *pod, unsigned count)
{
	mix_put(pod->mix, "'env':[{'name':'POD_NAME','valueFrom':{'fieldRef':{'apiVersion':'v1',"
			  "'fieldPath':'metadata.name'}}},{'name':'DB_PASSWORD','valueFrom':{"
			  "'secretKeyRef':{'name':'app-credentials','key':'password'}}}");
	for (unsigned i = 0; i < count; i++)
		mix_put(pod->mix,
			",{'name':'APP_SETTING_%u','value':"
			"'https://backend-%u.ns-%u.svc.cluster.local:8443/v1?a=1\\u0026b=2'}",
			i, i, (unsigned)(pod->n % 10));
	mix_put(pod->mix, "],");
}

static void pod_put_probe(struct pod *pod, const char *name, const char *path, unsigned period)
{
	mix_put(pod->mix,
		"'%s':{'httpGet':{'path':'%s','port':'http','scheme':'HTTP'},'timeoutSeconds':1,"
		"'periodSeconds':%u,'successThreshold':1,'failureThreshold':3},",
		name, path, period);
}

static void pod_put_container(struct pod *pod, const char *name, bool init, bool sidecar)
{
	bool main = !strcmp(name, "main");

	mix_put(pod->mix, "{'name':'%s','image':'", name);
	pod_put_image(pod, name);
	mix_put(pod->mix, "',");
	if (!main)
		mix_put(pod->mix, "'command':['/bin/sh','-c','exec %s \\\"$0\\\"'],", name);
	mix_put(pod->mix, "'args':['--port=8080','--log-level=info'],");
	if (!init)
		mix_put(pod->mix, "'ports':[{'name':'http','containerPort':%u,'protocol':'TCP'}],",
			8080 + (unsigned)strlen(name));
	if (main)
		pod_put_env(pod, pod->bare ? 0 : (unsigned)mix_size(pod->mix, 1, 12));
	mix_put(pod->mix,
		"'resources':{'limits':{'memory':'256Mi'},'requests':{'cpu':'%u0m',"
		"'memory':'128Mi'}},",
		1 + (unsigned)mix_below(pod->mix, 20));
	if (sidecar)
		mix_put(pod->mix, "'restartPolicy':'Always',");
	mix_put(pod->mix,
		"'volumeMounts':[{'name':'config','readOnly':true,'mountPath':'/etc/app'},"
		"{'name':'kube-api-access','readOnly':true,"
		"'mountPath':'/var/run/secrets/kubernetes.io/serviceaccount'}],");
	if (main && !pod->job && !pod->bare) {
		pod_put_probe(pod, "livenessProbe", "/healthz", 10);
		pod_put_probe(pod, "readinessProbe", "/readyz", 5);
	}
	mix_put(pod->mix,
		"'terminationMessagePath':'/dev/termination-log','terminationMessagePolicy':'File',"
		"'imagePullPolicy':'IfNotPresent','securityContext':{'capabilities':{'drop':['ALL']"
		"},"
		"'allowPrivilegeEscalation':false}}");
}

static void pod_put_volumes(struct pod *pod)
{
	mix_put(pod->mix, "'volumes':[{'name':'config','configMap':{'name':'app-config','"
			  "defaultMode':420}},");
	if (pod->n % 8 == 6)
		mix_put(pod->mix,
			"{'name':'data','persistentVolumeClaim':{'claimName':'data-%s'}},",
			pod->owner);
	mix_put(pod->mix,
		"{'name':'tmp','emptyDir':{'sizeLimit':'256Mi'}},"
		"{'name':'kube-api-access','projected':{'sources':[{'serviceAccountToken':{"
		"'expirationSeconds':3607,'path':'token'}},{'configMap':{'name':'kube-root-ca.crt',"
		"'items':[{'key':'ca.crt','path':'ca.crt'}]}},{'downwardAPI':{'items':[{'path':"
		"'namespace','fieldRef':{'apiVersion':'v1','fieldPath':'metadata.namespace'}}]}}],"
		"'defaultMode':420}}],");
}

static void pod_specify(struct pod *pod)
{
	pod->mix = draft_begin(pod->draft, &pod->draft->body);
	mix_put(pod->mix, "'spec':{");
	pod_put_volumes(pod);
	for (unsigned i = 0; i < pod->n_init; i++) {
		mix_put(pod->mix, i ? "," : "'initContainers':[");
		pod_put_container(pod, init_containers[i], true, pod->sidecar && i == 0);
	}
	mix_put(pod->mix, pod->n_init ? "],'containers':[" : "'containers':[");
	for (unsigned i = 0; i < pod->n_containers; i++) {
		mix_put(pod->mix, i ? "," : "");
		pod_put_container(pod, containers[i], false, false);
	}
	mix_put(pod->mix,
		"],'restartPolicy':'%s','terminationGracePeriodSeconds':30,'dnsPolicy':'"
		"ClusterFirst',"
		"'serviceAccountName':'default','serviceAccount':'default',",
		pod->job ? "Never" : "Always");
	if (pod->state != UNSCHEDULABLE)
		mix_put(pod->mix, "'nodeName':'node-%" PRIu64 "',", pod->n % LIFELIKE_NODES);
	mix_put(pod->mix,
		"'securityContext':{'fsGroup':2000,'seccompProfile':{'type':'RuntimeDefault'}},");
	mix_put(pod->mix, "'schedulerName':'default-scheduler','tolerations':[{'key':"
			  "'node.kubernetes.io/not-ready','operator':'Exists','effect':'NoExecute',"
			  "'tolerationSeconds':300},{'key':'node.kubernetes.io/"
			  "unreachable','operator':'Exists',"
			  "'effect':'NoExecute','tolerationSeconds':300}],'priority':0,'"
			  "enableServiceLinks':true,"
			  "'preemptionPolicy':'PreemptLowerPriority'}");
}

/* ---- status ------------------------------------------------------------- */

static void pod_put_terminated(struct pod *pod, unsigned code, const char *reason)
{
	mix_put(pod->mix, "{'terminated':{'exitCode':%u,'reason':'%s',", code, reason);
	if (code == 1)
		mix_put(pod->mix, "'message':'panic: open \\\"/etc/app/app.yaml\\\": no such "
				  "file\\n\\ngoroutine 1 "
				  "[running]:\\nmain.main()\\n\\t/src/main.go:17 +0x1d\\n',");
	mix_put(pod->mix, "'startedAt':");
	draft_put_time(pod->draft, 10);
	mix_put(pod->mix, ",'finishedAt':");
	draft_put_time(pod->draft, 71);
	mix_put(pod->mix, ",'containerID':'containerd://");
	mix_hex(pod->mix, 64);
	mix_put(pod->mix, "'}}");
}

static void pod_put_waiting(struct pod *pod, const char *reason, const char *message)
{
	mix_put(pod->mix, "{'waiting':{'reason':'%s'", reason);
	if (message)
		mix_put(pod->mix, ",'message':'%s'", message);
	mix_put(pod->mix, "}}");
}

static void pod_put_running(struct pod *pod)
{
	mix_put(pod->mix, "{'running':{'startedAt':");
	draft_put_time(pod->draft, 12);
	mix_put(pod->mix, "}}");
}

static void pod_put_state(struct pod *pod, const struct pod_look *look)
{
	if (look->how == LOOK_WAITING)
		pod_put_waiting(pod, look->reason, look->message);
	else if (look->how == LOOK_TERMINATED)
		pod_put_terminated(pod, look->code, look->reason);
	else
		pod_put_running(pod);
}

static bool pod_has_started(const struct pod *pod)
{
	return pod->state != CREATING && pod->state != INITIALIZING;
}

static void pod_put_container_status(struct pod *pod, const char *name, bool first)
{
	bool well = pod->state == RUNNING || pod->state == RESTARTED || pod->state == TERMINATING ||
		    pod->state == LOST ||
		    (!first && (pod->state == NOT_READY || pod->state == CRASH_LOOP));
	unsigned restarts = 0;

	mix_put(pod->mix, "{'name':'%s','state':", name);
	pod_put_state(pod, first ? &pod_looks[pod->state].first : &pod_looks[pod->state].others);
	mix_put(pod->mix, ",'lastState':");
	if (first && (pod->state == CRASH_LOOP || pod->state == RESTARTED)) {
		restarts = 1 + (unsigned)mix_size(pod->mix, 1, 2000);
		pod_put_terminated(pod, pod->state == RESTARTED ? 137 : 1,
			pod->state == RESTARTED ? "OOMKilled" : "Error");
	} else {
		mix_put(pod->mix, "{}");
	}
	mix_put(pod->mix, ",'ready':%s,'restartCount':%u,'image':'", well ? "true" : "false",
		restarts);
	pod_put_image(pod, name);
	mix_put(pod->mix, "','imageID':'");
	if (pod_has_started(pod)) {
		mix_put(pod->mix, "registry.example.com/%s@sha256:", name);
		mix_hex(pod->mix, 64);
		mix_put(pod->mix, "','containerID':'containerd://");
		mix_hex(pod->mix, 64);
	}
	mix_put(pod->mix,
		"','started':%s,'resources':{'requests':{'cpu':'100m','memory':'128Mi'}},"
		"'volumeMounts':[{'name':'config','mountPath':'/etc/app','readOnly':true,"
		"'recursiveReadOnly':'Disabled'}]}",
		well ? "true" : "false");
}

static void pod_put_init_statuses(struct pod *pod)
{
	for (unsigned i = 0; i < pod->n_init; i++) {
		bool sidecar = pod->sidecar && i == 0,
		     late = pod->state == INITIALIZING && i + 1 == pod->n_init;

		mix_put(pod->mix, "%s{'name':'%s','state':", i ? "," : ",'initContainerStatuses':[",
			init_containers[i]);
		if (late || pod->state == CREATING)
			pod_put_waiting(pod, "PodInitializing", NULL);
		else if (sidecar && pod->state != COMPLETED && pod->state != FAILED)
			pod_put_running(pod);
		else
			pod_put_terminated(pod, 0, "Completed");
		mix_put(pod->mix, ",'lastState':{},'ready':%s,'restartCount':0,'image':'",
			late ? "false" : "true");
		pod_put_image(pod, init_containers[i]);
		mix_put(pod->mix, "','imageID':'','started':%s}",
			sidecar && !late ? "true" : "false");
	}
	if (pod->n_init)
		mix_put(pod->mix, "]");
}

static void pod_put_conditions(struct pod *pod)
{
	bool initialized = pod->state != INITIALIZING;
	bool ready = pod->state == RUNNING || pod->state == RESTARTED || pod->state == TERMINATING;
	const char *why = pod->job && !ready ? "PodCompleted" : ready ? NULL : "ContainersNotReady";

	mix_put(pod->mix, "'conditions':[");
	if (pod->state == UNSCHEDULABLE) {
		mix_put(pod->mix, "{'type':'PodScheduled','status':'False','lastProbeTime':null,'"
				  "lastTransitionTime':");
		draft_put_time(pod->draft, 1);
		mix_put(pod->mix,
			",'reason':'Unschedulable','message':'0/100 nodes are available: 3 node(s) "
			"had untolerated taint {node.kubernetes.io/unreachable: }, 97 Insufficient "
			"memory.'}]");
		return;
	}
	draft_put_condition(pod->draft, true, "PodReadyToStartContainers",
		pod_has_started(pod) ? "True" : "False", NULL);
	draft_put_condition(pod->draft, false, "Initialized", initialized ? "True" : "False",
		initialized ? NULL : "ContainersNotInitialized");
	draft_put_condition(pod->draft, false, "Ready", ready ? "True" : "False", why);
	draft_put_condition(pod->draft, false, "ContainersReady", ready ? "True" : "False", why);
	draft_put_condition(pod->draft, false, "PodScheduled", "True", NULL);
	if (pod->state == LOST)
		draft_put_condition(
			pod->draft, false, "DisruptionTarget", "True", "DeletionByTaintManager");
	mix_put(pod->mix, "]");
}

static void pod_report(struct pod *pod)
{
	unsigned a = (unsigned)(pod->n / 250 % 250), b = (unsigned)(pod->n % 250);

	pod->mix = draft_begin(pod->draft, &pod->draft->status);
	mix_put(pod->mix, "'phase':'%s',", pod_looks[pod->state].phase);
	if (pod->state == EVICTED) {
		mix_put(pod->mix, "'message':'The node was low on resource: ephemeral-storage. "
				  "Threshold quantity: 1Gi, available: 812Mi. "
				  "','reason':'Evicted','startTime':");
		draft_put_time(pod->draft, 2);
		return;
	}
	pod_put_conditions(pod);
	if (pod->state == LOST)
		mix_put(pod->mix, ",'reason':'NodeLost'");
	if (pod->state != UNSCHEDULABLE) {
		mix_put(pod->mix, ",'hostIP':'10.0.0.%u','hostIPs':[{'ip':'10.0.0.%u'}]",
			(unsigned)(pod->n % LIFELIKE_NODES), (unsigned)(pod->n % LIFELIKE_NODES));
		if (pod_has_started(pod))
			mix_put(pod->mix,
				",'podIP':'10.244.%u.%u','podIPs':[{'ip':'10.244.%u.%u'},{'ip':'"
				"fd00:%x::%x'}]",
				a, b, a, b, a, b);
		mix_put(pod->mix, ",'startTime':");
		draft_put_time(pod->draft, 2);
		pod_put_init_statuses(pod);
		for (unsigned i = 0; i < pod->n_containers; i++) {
			mix_put(pod->mix, i ? "," : ",'containerStatuses':[");
			pod_put_container_status(pod, containers[i], i == 0);
		}
		mix_put(pod->mix, "]");
	}
	mix_put(pod->mix, ",'qosClass':'Burstable'");
}

void lifelike_pod(struct draft *draft)
{
	struct pod pod = {
		.draft = draft,
		.mix = &draft->mix,
		.n = draft->n,
		.app = draft->n % LIFELIKE_APPS,
		.state = pod_states[draft->n % 40],
	};

	pod.job = pod.state == COMPLETED || pod.state == FAILED;
	pod.bare = draft->n % 16 == 11;
	pod.n_containers = pod.bare ? 1 : 1 + mix_chance(pod.mix, 35) + mix_chance(pod.mix, 15);
	if (draft->n % 20 == 16)
		pod.n_containers = 4 + (unsigned)mix_below(pod.mix, 4);
	if (pod.state == INITIALIZING)
		pod.n_init = 2;
	else if (draft->n % 8 == 2)
		pod.n_init = 1 + (unsigned)mix_below(pod.mix, 3);
	pod.sidecar = mix_chance(pod.mix, 60);
	buf_printf(&draft->generate_name, "app-%" PRIu64 "-", pod.app);
	draft->deleted = pod.state == TERMINATING;
	pod_own(&pod);
	pod_label(&pod);
	pod_annotate(&pod);
	pod_specify(&pod);
	pod_report(&pod);
}
