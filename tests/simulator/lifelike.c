/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/simulator/lifelike.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "common/cleanup.h"
#include "tests/simulator/jsontext.h"

struct mix *draft_begin(struct draft *draft, struct buf *part)
{
	draft->mix.out = part;
	return &draft->mix;
}

/* Objects are made up to a year before this time, 2026-06-01. */
#define DRAFT_NOW 1780272000

void draft_put_time(struct draft *draft, unsigned seconds)
{
	time_t at = DRAFT_NOW + seconds - (time_t)(draft->n * 7919 % (86400 * 365));
	struct tm tm;
	char text[sizeof("2026-01-15T10:00:00Z")];

	gmtime_r(&at, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	mix_put(&draft->mix, "'%s'", text);
}

void draft_put_condition(
	struct draft *draft, bool first, const char *type, const char *status, const char *reason)
{
	mix_put(&draft->mix, "%s{'type':'%s','status':'%s','lastTransitionTime':", first ? "" : ",",
		type, status);
	draft_put_time(draft, 7);
	if (reason)
		mix_put(&draft->mix, ",'reason':'%s','message':'it is so: [main] \\u0026 others'",
			reason);
	mix_put(&draft->mix, "}");
}

void draft_put_owner(struct draft *draft, const char *api, const char *kind, const char *name)
{
	struct mix *mix = draft_begin(draft, &draft->owners);

	mix_put(mix, "%s{'apiVersion':'%s','kind':'%s','name':'%s','uid':'",
		draft->owners.size ? "," : "", api, kind, name);
	mix_uid(mix, 0x0e5, draft->n % LIFELIKE_APPS);
	mix_put(mix, "','controller':true,'blockOwnerDeletion':true}");
}

static void draft_release(struct draft *draft)
{
	struct buf *parts[] = {&draft->name, &draft->generate_name, &draft->labels,
		&draft->annotations, &draft->owners, &draft->finalizers, &draft->body,
		&draft->status};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		buf_release(parts[i]);
}

/* ---- managedFields ------------------------------------------------------ */

/* Appends one manager's fields, PART and its COUNT items. */
static void draft_put_manager(
	struct draft *draft, const char *manager, unsigned seconds, const char *part, size_t count)
{
	mix_put(&draft->mix, "{'manager':'%s','operation':'Update','apiVersion':'", manager);
	kind_put_group_version(draft->kind, draft->mix.out);
	mix_put(&draft->mix, "','time':");
	draft_put_time(draft, seconds);
	mix_put(&draft->mix,
		",'fieldsType':'FieldsV1','fieldsV1':{'f:metadata':{'f:labels':{'.':{},"
		"'f:app':{}}},'f:%s':{'.':{}",
		part);
	for (size_t i = 0; i < count; i++)
		mix_put(&draft->mix,
			",'k:{\\\"name\\\":\\\"APP_SETTING_%zu\\\"}':{'.':{},'f:name':{},'f:value':"
			"{}}",
			i);
	mix_put(&draft->mix, "}}");
}

/* As many fields as the object may have. */
static void draft_put_managed(struct draft *draft)
{
	size_t count = draft->body.size / 100;

	if (!draft->manager)
		return;
	mix_put(&draft->mix, "'managedFields':[");
	draft_put_manager(draft, draft->manager, 0, "spec", count < 40 ? count : 40);
	mix_put(&draft->mix, "}");
	if (draft->status.size) {
		mix_put(&draft->mix, ",");
		draft_put_manager(draft, draft->status_manager, 9, "status", 3);
		mix_put(&draft->mix, ",'subresource':'status'}");
	}
	mix_put(&draft->mix, "],");
}

/* ---- the object --------------------------------------------------------- */

/* Appends a member in BRACKETS unless it is empty. */
static void draft_put_part(
	struct draft *draft, const char *name, const char brackets[2], const struct buf *part)
{
	if (part->size)
		buf_printf(draft->mix.out, "\"%s\":%c%.*s%c,", name, brackets[0],
			BYTES_ARG(buf_bytes(part)), brackets[1]);
}

/* Appends metadata in the order of the Go type. Custom resources have sorted members, with the name
 * after the managedFields. */
static void draft_put_metadata(struct draft *draft, const struct generate_options *options)
{
	mix_put(&draft->mix, "{'metadata':{");
	draft_put_part(draft, "annotations", "{}", &draft->annotations);
	if (draft->kind->custom)
		draft_put_managed(draft);
	buf_printf(draft->mix.out, "\"name\":\"%s\",", buf_cstr(&draft->name));
	if (draft->generate_name.size)
		mix_put(&draft->mix, "'generateName':'%s',", buf_cstr(&draft->generate_name));
	if (draft->kind->namespaced)
		mix_put(&draft->mix, "'namespace':'ns-%" PRIu64 "',",
			draft->n % options->namespaces);
	if (draft->generation)
		mix_put(&draft->mix, "'generation':%u,", draft->generation);
	mix_put(&draft->mix, "'creationTimestamp':");
	draft_put_time(draft, 0);
	mix_put(&draft->mix, ",");
	if (draft->deleted) {
		mix_put(&draft->mix, "'deletionTimestamp':");
		draft_put_time(draft, 40);
		mix_put(&draft->mix, ",'deletionGracePeriodSeconds':30,");
	}
	draft_put_part(draft, "labels", "{}", &draft->labels);
	draft_put_part(draft, "ownerReferences", "[]", &draft->owners);
	draft_put_part(draft, "finalizers", "[]", &draft->finalizers);
	if (!draft->kind->custom)
		draft_put_managed(draft);
	buf_truncate(draft->mix.out, draft->mix.out->size - 1); /* the last comma */
	mix_put(&draft->mix, "}");
}

static void draft_put_object(
	struct draft *draft, const struct generate_options *options, struct buf *out)
{
	draft_begin(draft, out);
	draft_put_metadata(draft, options);
	if (draft->body.size)
		buf_printf(out, ",%.*s", BYTES_ARG(buf_bytes(&draft->body)));
	if (draft->status.size)
		buf_printf(out, ",\"status\":{%.*s}", BYTES_ARG(buf_bytes(&draft->status)));
	buf_byte(out, '}');
}

/* ---- names -------------------------------------------------------------- */

/* Names of roles and their bindings: any text without / and %. As the API server writes them. */
static const char *const odd_names[] = {"R\\u0026D", "say \\\"hi\\\"", "back\\\\slash",
	"system:aggregate-to-view", "naïve-роль", "日本語", "a b", "\\u003cb\\u003ebold\\u003c",
	"{curly}[square]", "$HOME;,", "🚀", "e\u0301", "it's", "query?x=1#frag", "star*",
	"UPPER_case", "a+b=c", "..."};

#define ODD_NAMES (sizeof(odd_names) / sizeof(odd_names[0]))

static void draft_name(struct draft *draft, const struct generate_options *options)
{
	bool rbac = !strcmp(draft->kind->group, "rbac.authorization.k8s.io");
	size_t longest = rbac ? 700 : 253;

	buf_printf(&draft->name, "%s%" PRIu64, options->prefix, draft->n);
	if (!strcmp(draft->kind->resource, "events")) {
		struct mix *mix = draft_begin(draft, &draft->name);

		mix_put(mix, ".18");
		mix_hex(mix, 14);
	}
	if (rbac && draft->n % (2 * ODD_NAMES) < ODD_NAMES)
		buf_printf(&draft->name, ":%s", odd_names[draft->n % ODD_NAMES]);
	if (!rbac && draft->n % 50 == 37 && !draft->kind->custom)
		buf_printf(&draft->name, "-7d9f8c6b54-x%zux9k", (size_t)draft->n % 10);
	if (options->short_names || draft->n % 200 != (rbac ? 39 : 141))
		return;
	buf_byte(&draft->name, '.');
	while (draft->name.size < longest)
		buf_byte(&draft->name, 'x');
}

/* ---- workloads ---------------------------------------------------------- */

static void lifelike_label_app(struct draft *draft)
{
	uint64_t app = draft->n % LIFELIKE_APPS;
	struct mix *mix = draft_begin(draft, &draft->labels);

	mix_put(mix, "'app':'app-%" PRIu64 "','app.kubernetes.io/managed-by':'Helm',", app);
	mix_put(mix,
		"'app.kubernetes.io/name':'app-%" PRIu64 "','helm.sh/chart':'app-%" PRIu64
		"-4.12.0'",
		app, app);
}

static void lifelike_put_template(struct draft *draft)
{
	uint64_t app = draft->n % LIFELIKE_APPS;

	mix_put(&draft->mix,
		"'template':{'metadata':{'labels':{'app':'app-%" PRIu64
		"','app.kubernetes.io/name':'app-%" PRIu64
		"','tier':'front'},'annotations':{'checksum/config':'",
		app, app);
	mix_hex(&draft->mix, 64);
	mix_put(&draft->mix,
		"'}},'spec':{'containers':[{'name':'main','image':'registry.example.com/app:1.0.0',"
		"'ports':[{'name':'http','containerPort':8080,'protocol':'TCP'}],'env':[");
	for (size_t i = 0, count = mix_size(&draft->mix, 1, 32); i < count; i++)
		mix_put(&draft->mix,
			"%s{'name':'APP_SETTING_%zu','value':'https://backend-%zu.example.com/"
			"?a=1\\u0026b=2'}",
			i ? "," : "", i, i);
	mix_put(&draft->mix, "],'resources':{'limits':{'memory':'256Mi'}},'terminationMessagePath':"
			     "'/dev/termination-log',"
			     "'imagePullPolicy':'IfNotPresent'}],'restartPolicy':'Always','"
			     "dnsPolicy':'ClusterFirst',"
			     "'securityContext':{},'schedulerName':'default-scheduler'}}");
}

static void lifelike_deployment(struct draft *draft)
{
	uint64_t app = draft->n % LIFELIKE_APPS;
	unsigned replicas = (unsigned)(draft->n % 5), ready = draft->n % 9 == 4 ? 0 : replicas;
	struct mix *mix;

	lifelike_label_app(draft);
	mix = draft_begin(draft, &draft->annotations);
	mix_put(mix, "'deployment.kubernetes.io/revision':'%u'", 1 + (unsigned)(draft->n % 30));
	mix = draft_begin(draft, &draft->body);
	mix_put(mix,
		"'spec':{'replicas':%u,'selector':{'matchLabels':{'app':'app-%" PRIu64 "',"
		"'app.kubernetes.io/name':'app-%" PRIu64 "'}},",
		replicas, app, app);
	lifelike_put_template(draft);
	mix_put(mix, ",'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxUnavailable':'25%%',"
		     "'maxSurge':1}},"
		     "'revisionHistoryLimit':3,'progressDeadlineSeconds':600}");
	if (draft->n % 3 == 1) {
		mix = draft_begin(draft, &draft->annotations);
		mix_put(mix, ",'kubectl.kubernetes.io/last-applied-configuration':");
		jsontext_put_string(mix->out, buf_bytes(&draft->body));
	}
	mix = draft_begin(draft, &draft->status);
	mix_put(mix, "'observedGeneration':%u,", draft->generation);
	if (replicas)
		mix_put(mix, "'replicas':%u,'updatedReplicas':%u,", replicas, replicas);
	if (ready)
		mix_put(mix, "'readyReplicas':%u,'availableReplicas':%u,", ready, ready);
	if (ready < replicas)
		mix_put(mix, "'unavailableReplicas':%u,", replicas - ready);
	mix_put(mix, "'conditions':[");
	draft_put_condition(draft, true, "Available", ready == replicas ? "True" : "False",
		"MinimumReplicasAvailable");
	draft_put_condition(draft, false, "Progressing", "True", "NewReplicaSetAvailable");
	mix_put(mix, "]");
}

static void lifelike_replicaset(struct draft *draft)
{
	uint64_t app = draft->n % LIFELIKE_APPS;
	unsigned replicas =
		draft->n % 4 ? 0 : (unsigned)(draft->n % 5); /* most are of old revisions */
	char owner[32];
	struct mix *mix;

	lifelike_label_app(draft);
	mix = draft_begin(draft, &draft->labels);
	mix_put(mix, ",'pod-template-hash':'5d%04" PRIx64 "'", app);
	(void)snprintf(owner, sizeof(owner), "app-%" PRIu64, app);
	draft_put_owner(draft, "apps/v1", "Deployment", owner);
	mix = draft_begin(draft, &draft->body);
	mix_put(mix,
		"'spec':{'replicas':%u,'selector':{'matchLabels':{'app':'app-%" PRIu64 "',"
		"'pod-template-hash':'5d%04" PRIx64 "'}},",
		replicas, app, app);
	lifelike_put_template(draft);
	mix_put(mix, "}");
	mix = draft_begin(draft, &draft->status);
	mix_put(mix, "'replicas':%u,", replicas);
	if (replicas)
		mix_put(mix, "'fullyLabeledReplicas':%u,'readyReplicas':%u,'availableReplicas':%u,",
			replicas, replicas, replicas);
	mix_put(mix, "'observedGeneration':%u", draft->generation);
}

static void lifelike_service(struct draft *draft)
{
	unsigned b = (unsigned)(draft->n % 250);
	struct mix *mix;

	lifelike_label_app(draft);
	mix = draft_begin(draft, &draft->status);
	mix_put(mix, "'loadBalancer':{");
	if (draft->n % 8 == 3)
		mix_put(mix,
			"'ingress':[{'ip':'203.0.113.%u','ipMode':'VIP'},{'hostname':'lb-%u."
			"example.com'}]",
			b, b);
	mix_put(mix, "}");
	mix = draft_begin(draft, &draft->body);
	if (draft->n % 8 == 5) {
		mix_put(mix,
			"'spec':{'type':'ExternalName','sessionAffinity':'None','externalName':'db-"
			"%u.example.com'}",
			b);
		return;
	}
	mix_put(mix,
		"'spec':{'ports':[{'name':'http','protocol':'TCP','port':80,'targetPort':'http'%s},"
		"{'name':'metrics','protocol':'UDP','port':9090,'targetPort':9090}],'selector':{'"
		"app':'app-%u'},",
		draft->n % 8 == 3 ? ",'nodePort':30080" : "", (unsigned)(draft->n % LIFELIKE_APPS));
	if (draft->n % 8 == 1)
		mix_put(mix, "'clusterIP':'None','clusterIPs':['None'],'type':'ClusterIP',");
	else
		mix_put(mix,
			"'clusterIP':'10.96.0.%u','clusterIPs':['10.96.0.%u','fd00:10:96::%x'],'"
			"type':'%s',",
			b, b, b, draft->n % 8 == 3 ? "LoadBalancer" : "ClusterIP");
	mix_put(mix, "'sessionAffinity':'None','ipFamilies':['IPv4','IPv6'],'ipFamilyPolicy':'"
		     "PreferDualStack',"
		     "'internalTrafficPolicy':'Cluster'}");
}

/* ---- settings ----------------------------------------------------------- */

/* Most are a few hundred bytes; one in ten is a file of tens of kB, one in two hundred dashboards
 * of 900 kB. */
static void lifelike_configmap(struct draft *draft)
{
	struct mix *mix = draft_begin(draft, &draft->body);
	size_t size = mix_size(mix, 20, 4000);

	if (draft->n % 200 == 143)
		size = 900000;
	else if (draft->n % 10 == 7)
		size = mix_size(mix, 8000, 80000);
	if (draft->n % 3)
		lifelike_label_app(draft);
	if (draft->n % 25 == 19) /* as leader election used to do */
		return;
	if (draft->n % 16 == 11) {
		draft_begin(draft, &draft->body);
		mix_put(mix, "'data':{'key':'value-%" PRIu64 "'}", draft->n);
		return;
	}
	mix = draft_begin(draft, &draft->body);
	mix_put(mix, "'data':{'.2026_data':'','app.yaml':'");
	mix_settings(mix, size);
	mix_put(mix, "','key':'value-%" PRIu64 "'}", draft->n);
	if (draft->n % 25 == 11) {
		mix_put(mix, ",'binaryData':{'truststore.jks':'");
		mix_base64(mix, 3000);
		mix_put(mix, "'}");
	}
	if (draft->n % 25 == 13)
		mix_put(mix, ",'immutable':true");
}

static void lifelike_secret(struct draft *draft)
{
	static const char *const types[] = {"Opaque", "kubernetes.io/tls", "Opaque",
		"helm.sh/release.v1", "Opaque", "kubernetes.io/service-account-token",
		"kubernetes.io/dockerconfigjson"};
	static const size_t sizes[] = {32, 5600, 64, 0, 300, 1800, 400};
	unsigned i = (unsigned)(draft->n % 7);
	struct mix *mix = draft_begin(draft, &draft->body);
	size_t size = sizes[i]              ? sizes[i]
		      : draft->n % 70 == 45 ? 600000
					    : mix_size(mix, 4000, 32000);

	lifelike_label_app(draft);
	mix = draft_begin(draft, &draft->body);
	mix_put(mix, "'data':{'key':'dmFsdWUt%04u','value':'", (unsigned)(draft->n % 10000));
	mix_base64(mix, size);
	mix_put(mix, "'},'type':'%s'", types[i]);
}

/* ---- the cluster -------------------------------------------------------- */

static void lifelike_node(struct draft *draft)
{
	static const char *const pressures[] = {"MemoryPressure", "DiskPressure", "PIDPressure"};
	bool ready = draft->n % 25 != 9, away = draft->n % 25 == 17;
	unsigned n = (unsigned)(draft->n % 256);
	struct mix *mix = draft_begin(draft, &draft->labels);

	mix_put(mix, "'app':'app-%u','beta.kubernetes.io/arch':'%s',",
		(unsigned)(draft->n % LIFELIKE_APPS), n % 5 ? "amd64" : "arm64");
	mix_put(mix, "'kubernetes.io/hostname':'%s','kubernetes.io/os':'linux',",
		buf_cstr(&draft->name));
	if (n % 25 < 3)
		mix_put(mix, "'node-role.kubernetes.io/control-plane':'',");
	mix_put(mix,
		"'topology.kubernetes.io/region':'eu-central-1','topology.kubernetes.io/"
		"zone':'eu-central-1%c'",
		'a' + n % 3);
	mix = draft_begin(draft, &draft->annotations);
	mix_put(mix,
		"'csi.volume.kubernetes.io/nodeid':'{\\\"csi.example.com\\\":\\\"i-%05x\\\"}',"
		"'node.alpha.kubernetes.io/ttl':'0','volumes.kubernetes.io/"
		"controller-managed-attach-detach':'true'",
		n);
	mix = draft_begin(draft, &draft->body);
	mix_put(mix,
		"'spec':{'podCIDR':'10.244.%u.0/24','podCIDRs':['10.244.%u.0/"
		"24'],'providerID':'cloud:///i-%05x'",
		n, n, n);
	if (n % 25 == 5)
		mix_put(mix, ",'taints':[{'key':'node.kubernetes.io/"
			     "unschedulable','effect':'NoSchedule'}],'unschedulable':true");
	else if (n % 25 < 3)
		mix_put(mix, ",'taints':[{'key':'node-role.kubernetes.io/"
			     "control-plane','effect':'NoSchedule'}]");
	mix_put(mix, "}");
	mix = draft_begin(draft, &draft->status);
	mix_put(mix, "'capacity':{'cpu':'8','ephemeral-storage':'101330012Ki','hugepages-2Mi':'0','"
		     "memory':'32Gi','pods':'110'},"
		     "'allocatable':{'cpu':'7910m','ephemeral-storage':'93385738905','hugepages-"
		     "2Mi':'0','memory':'31Gi','pods':'110'},"
		     "'conditions':[");
	for (unsigned i = 0; i < 3; i++)
		draft_put_condition(draft, i == 0, pressures[i],
			away         ? "Unknown"
			: i || ready ? "False"
				     : "True",
			"KubeletHasEnough");
	draft_put_condition(draft, false, "Ready",
		away    ? "Unknown"
		: ready ? "True"
			: "False",
		ready ? "KubeletReady" : "KubeletNotReady");
	mix_put(mix,
		"],'addresses':[{'type':'InternalIP','address':'10.0.0.%u'},{'type':'Hostname','"
		"address':'%s'}],"
		"'daemonEndpoints':{'kubeletEndpoint':{'Port':10250}},'nodeInfo':{'machineID':'",
		n, buf_cstr(&draft->name));
	mix_hex(mix, 32);
	mix_put(mix, "','systemUUID':'");
	mix_uid(mix, 0x5d, draft->n);
	mix_put(mix, "','bootID':'");
	mix_uid(mix, 0xb0, draft->n);
	mix_put(mix,
		"','kernelVersion':'6.1.0-29-amd64','osImage':'Debian GNU/Linux 12 (bookworm)',"
		"'containerRuntimeVersion':'containerd://"
		"2.1.4','kubeletVersion':'v1.36.3','kubeProxyVersion':'',"
		"'operatingSystem':'linux','architecture':'%s'},'images':[",
		n % 5 ? "amd64" : "arm64");
	for (unsigned i = 0; i < 40; i++) {
		mix_put(mix, "%s{'names':['registry.example.com/app-%u@sha256:", i ? "," : "", i);
		mix_hex(mix, 64);
		mix_put(mix, "','registry.example.com/app-%u:1.%u.0'],'sizeBytes':%u}", i, i % 7,
			90000000 - i * 1000);
	}
	mix_put(mix, "]");
}

static void lifelike_namespace(struct draft *draft)
{
	struct mix *mix = draft_begin(draft, &draft->labels);

	draft->deleted = draft->n % 10 == 6;
	mix_put(mix,
		"'app':'app-%u','kubernetes.io/metadata.name':'%s',"
		"'pod-security.kubernetes.io/enforce':'restricted'",
		(unsigned)(draft->n % LIFELIKE_APPS), buf_cstr(&draft->name));
	mix = draft_begin(draft, &draft->body);
	mix_put(mix, "'spec':{'finalizers':['kubernetes']}");
	mix = draft_begin(draft, &draft->status);
	mix_put(mix, "'phase':'%s'", draft->deleted ? "Terminating" : "Active");
	if (!draft->deleted)
		return;
	mix_put(mix, ",'conditions':[");
	draft_put_condition(
		draft, true, "NamespaceContentRemaining", "True", "SomeResourcesRemain");
	mix_put(mix, "]");
}

/* Events of old and of new clients: with counts, or with a series and an eventTime. */
static void lifelike_event(struct draft *draft)
{
	static const char *const reasons[] = {"Scheduled", "Pulled", "Created", "Started",
		"BackOff", "Unhealthy", "FailedScheduling", "Killing", "ScalingReplicaSet",
		"FailedMount"};
	const char *reason = reasons[draft->n % 10];
	bool warning = draft->n % 10 >= 4 && draft->n % 10 != 7 && draft->n % 10 != 8,
	     late = draft->n % 3 == 2;
	struct mix *mix = draft_begin(draft, &draft->body);

	mix_put(mix,
		"'involvedObject':{'kind':'%s','namespace':'ns-0','name':'pod-%" PRIu64 "','uid':'",
		draft->n % 10 == 8 ? "Deployment" : "Pod", draft->n);
	mix_uid(mix, 0x9, draft->n);
	mix_put(mix,
		"','apiVersion':'v1','resourceVersion':'%" PRIu64
		"','fieldPath':'spec.containers{main}'},"
		"'reason':'%s','message':'",
		1000 + draft->n, reason);
	mix_put(mix,
		draft->n % 10 == 6 ? "0/5 nodes are available: 5 Insufficient cpu.\\npreemption: "
				     "0/5 nodes are available"
				   : "Back-off restarting \\\"main\\\" in pod pod-%" PRIu64
				     " \\u0026 its “sidecar”",
		draft->n);
	mix_put(mix, "','source':{");
	if (!late)
		mix_put(mix, "'component':'kubelet','host':'node-%" PRIu64 "'",
			draft->n % LIFELIKE_NODES);
	mix_put(mix, "},'firstTimestamp':");
	if (late)
		mix_put(mix, "null");
	else
		draft_put_time(draft, 0);
	mix_put(mix, ",'lastTimestamp':");
	if (late)
		mix_put(mix, "null");
	else
		draft_put_time(draft, 600);
	if (!late)
		mix_put(mix, ",'count':%zu", mix_size(mix, 1, 4000));
	mix_put(mix, ",'type':'%s','eventTime':", warning ? "Warning" : "Normal");
	if (late)
		mix_put(mix, "'2026-05-03T10:00:00.123456Z','series':{'count':7,'lastObservedTime':"
			     "'2026-05-03T11:00:00.000001Z'},"
			     "'action':'Binding'");
	else
		mix_put(mix, "null");
	mix_put(mix, ",'reportingComponent':'%s','reportingInstance':'%s'",
		late ? "default-scheduler" : "kubelet", late ? "default-scheduler-0" : "");
}

static void lifelike_role(struct draft *draft)
{
	struct mix *mix = draft_begin(draft, &draft->labels);

	mix_put(mix, "'kubernetes.io/bootstrapping':'rbac-defaults','rbac.authorization.k8s.io/"
		     "aggregate-to-view':'true'");
	mix = draft_begin(draft, &draft->annotations);
	mix_put(mix, "'rbac.authorization.kubernetes.io/autoupdate':'true'");
	mix = draft_begin(draft, &draft->body);
	mix_put(mix, "'rules':[");
	for (size_t i = 0, count = draft->n % 12 == 5 ? 0 : mix_size(mix, 1, 60); i < count; i++)
		mix_put(mix,
			"%s{'verbs':['get','list','watch'],'apiGroups':['','apps'],'resources':['"
			"pods','pods/log','deployments'],"
			"'resourceNames':['app-%zu']}",
			i ? "," : "", i);
	mix_put(mix, "]");
}

static void lifelike_custom(struct draft *draft)
{
	static const char *const phases[] = {"Ready", "Ready", "Progressing", "Failed"};
	struct mix *mix;

	lifelike_label_app(draft);
	if (draft->n % 12 == 10) {
		draft->deleted = true;
		mix = draft_begin(draft, &draft->finalizers);
		mix_put(mix, "'example.com/cleanup'");
	}
	mix = draft_begin(draft, &draft->body);
	mix_put(mix,
		"'spec':{'big':9223372036854775807,'color':'%s','empty':{},'list':[],'none':null,'"
		"notes':'",
		draft->n % 2 ? "red" : "blue");
	mix_settings(mix, mix_size(mix, 20, 4000));
	mix_put(mix, "','ratio':1.5,'size':%" PRIu64 ",'tiny':1e-7}", draft->n);
	mix = draft_begin(draft, &draft->status);
	mix_put(mix, "'conditions':[");
	draft_put_condition(draft, true, "Ready", draft->n % 4 ? "True" : "Unknown", "Synced");
	mix_put(mix, "],'observedGeneration':%u,'phase':'%s'", draft->generation,
		MIX_PICK(mix, phases));
}

static const struct {
	const char *resource;
	void (*describe)(struct draft *draft);
	const char *manager, *status_manager;
} lifelike_kinds[] = {
	{"clusterroles", lifelike_role, "kube-apiserver", ""},
	{"configmaps", lifelike_configmap, "kubectl-client-side-apply", ""},
	{"deployments", lifelike_deployment, "helm", "kube-controller-manager"},
	{"events", lifelike_event, "kubelet", ""},
	{"namespaces", lifelike_namespace, "kubectl-create", "kube-controller-manager"},
	{"nodes", lifelike_node, "kubelet", "kubelet"},
	{"pods", lifelike_pod, "kube-controller-manager", "kubelet"},
	{"replicasets", lifelike_replicaset, "kube-controller-manager", "kube-controller-manager"},
	{"roles", lifelike_role, "helm", ""},
	{"secrets", lifelike_secret, "helm", ""},
	{"services", lifelike_service, "argocd-controller", "cloud-controller-manager"},
};

bool lifelike_object(const struct kind *kind, uint64_t n, const struct generate_options *options,
	struct buf *out)
{
	CLEANUP(draft_release)
	struct draft draft = {
		.kind = kind,
		.n = n,
		.manager = "widget-controller",
		.status_manager = "widget-controller",
		.generation = 1 + (unsigned)(n % 4),
	};
	void (*describe)(struct draft *) = kind->custom ? lifelike_custom : NULL;

	for (size_t i = 0; i < sizeof(lifelike_kinds) / sizeof(lifelike_kinds[0]) && !kind->custom;
		i++)
		if (!strcmp(kind->resource, lifelike_kinds[i].resource)) {
			describe = lifelike_kinds[i].describe;
			draft.manager = lifelike_kinds[i].manager;
			draft.status_manager = lifelike_kinds[i].status_manager;
		}
	if (!describe)
		return false;
	mix_init(&draft.mix, options->seed, kind->resource, n, out);
	if (kind->no_status)
		draft.generation = 0;
	draft_name(&draft, options);
	describe(&draft);
	if (n % 16 == 11) /* made before the API server kept them */
		draft.manager = NULL;
	draft_put_object(&draft, options, out);
	return true;
}
