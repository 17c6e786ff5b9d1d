/* SPDX-License-Identifier: Apache-2.0 */
#include "reflector/net/exec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/check.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "common/proc.h"
#include "reflector/net/plugin.h"

#define EXEC_MAGIC 0x45584543u
#define EARLY_MAX  (60 * SECOND_NS) /* how long before they expire credentials are renewed */
#define PAUSE_MAX  (15 * SECOND_NS)
/* a 401 to credentials older than this is not the plugin's fault */
#define YOUNG (60 * SECOND_NS)

static uint64_t exec_pause(unsigned useless_runs)
{
	uint64_t pause = useless_runs ? SECOND_NS << (useless_runs < 6 ? useless_runs - 1 : 5) : 0;

	return pause < PAUSE_MAX ? pause : PAUSE_MAX;
}

/* ---- how a run ends ----------------------------------------------------- */

static int exec_fail(struct exec *exec, int result, uint64_t now_ns)
{
	plugin_free(&exec->plugin);
	exec->failed = result;
	(void)snprintf(exec->sentence, sizeof(exec->sentence), "%s", err_text(result));
	exec->useless_runs++;
	exec->pause_ns = now_ns + exec_pause(exec->useless_runs);
	return result;
}

static void exec_collect(struct exec *exec, uint64_t now_ns, uint64_t wall_ns)
{
	struct exec_credential credential;
	int r = plugin_collect(exec->plugin);

	if (r == AGAIN && now_ns < exec->started_ns + exec->limit_ns)
		return;
	if (r == AGAIN)
		r = err_say(ERR_CREDENTIALS, "exec: executable %s did not end within %g s",
			exec->config->exec.command, (double)exec->limit_ns / 1e9);
	if (!r)
		r = exec_credential_read(
			plugin_output(exec->plugin), exec->config->exec.api_version, &credential);
	if (r < 0) {
		(void)exec_fail(exec, r, now_ns);
		return;
	}
	plugin_free(&exec->plugin);

	uint64_t life = credential.expires_ns > wall_ns ? credential.expires_ns - wall_ns : 0;
	uint64_t early = life / 10 < EARLY_MAX ? life / 10 : EARLY_MAX;

	/* The plugin does not help when its last credentials were refused soon, or had expired on
	 * arrival. */
	bool useless = exec->has && (exec->refused ? now_ns - exec->taken_ns < YOUNG
						   : exec->life_ns < SECOND_NS);

	exec->useless_runs = useless ? exec->useless_runs + 1 : 0;
	exec->pause_ns = now_ns + exec_pause(exec->useless_runs);
	exec_credential_release(&exec->credential);
	exec->credential = credential;
	exec->has = true;
	exec->refused = false;
	exec->failed = 0;
	exec->version++;
	exec->taken_ns = now_ns;
	exec->life_ns = life;
	exec->renew_ns = credential.expires_ns - early;
}

/* ---- when it runs ------------------------------------------------------- */

int exec_renew(struct exec *exec, uint64_t now_ns, uint64_t wall_ns)
{
	CHECK_OBJ(exec, EXEC_MAGIC);
	if (exec->plugin)
		exec_collect(exec, now_ns, wall_ns);
	exec->awaited = false;

	bool good = exec->has && !exec->refused && wall_ns < exec->credential.expires_ns;

	if (good && wall_ns < exec->renew_ns)
		return 0;
	if (!exec->plugin && now_ns >= exec->pause_ns) {
		CLEANUP(buf_release) struct buf info = BUF_SECRET; /* holds a proxy's password */
		int r = exec_credential_info(exec->config, &info);

		if (!r)
			r = plugin_start(&exec->config->exec, buf_cstr(&info), &exec->plugin);
		exec->started_ns = now_ns;
		if (r < 0)
			(void)exec_fail(exec, r, now_ns);
	}
	exec->awaited = !good && exec->plugin;
	if (good)
		return 0;
	if (exec->awaited)
		return AGAIN;
	/* During the pause after useless credentials, those are all there is. */
	return exec->failed ? err_say(exec->failed, "%s", exec->sentence) : 0;
}

void exec_refused(struct exec *exec, unsigned version)
{
	CHECK_OBJ(exec, EXEC_MAGIC);
	if (exec->has && version == exec->version)
		exec->refused = true;
}

/* ---- the whole ---------------------------------------------------------- */

int exec_new(const struct kubeconfig *config, uint64_t limit_ns, struct exec **ret_exec)
{
	struct exec *exec = calloc(1, sizeof(*exec));

	if (!exec)
		return err_set(-ENOMEM, "exec plugin");
	*exec = (struct exec){.magic = EXEC_MAGIC, .config = config, .limit_ns = limit_ns};
	*ret_exec = exec;
	return 0;
}

void exec_free(struct exec **exec)
{
	struct exec *e = *exec;

	*exec = NULL;
	if (!e)
		return;
	CHECK_OBJ(e, EXEC_MAGIC);
	plugin_free(&e->plugin);
	exec_credential_release(&e->credential);
	e->magic = 0;
	free(e);
}
