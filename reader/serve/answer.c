/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/serve/answer.h"

int answer_open(const struct answer_options *options, struct answer **ret_answer)
{
	(void)options;
	*ret_answer = NULL;
	return 0;
}

void answer_reload(struct answer *answer, const struct config *config)
{
	(void)answer;
	(void)config;
}

void answer_stop(struct answer *answer)
{
	(void)answer;
}

void answer_close(struct answer **answer)
{
	*answer = NULL;
}

int answer_worker_open(
	struct answer *answer, struct serve_worker *worker, struct answer_worker **ret_worker)
{
	(void)answer;
	(void)worker;
	*ret_worker = NULL;
	return 0;
}

void answer_worker_woken(struct answer_worker *worker)
{
	(void)worker;
}

void answer_worker_close(struct answer_worker **worker)
{
	*worker = NULL;
}

void serve_answer(struct serve_worker *worker, struct exchange *x)
{
	(void)worker;
	exchange_refuse(x, 404, "NotFound", "the server could not find the requested resource", 0);
}

size_t answer_ready(struct answer *answer, struct answer_check ret_checks[ANSWER_CHECKS_MAX])
{
	(void)answer;
	(void)ret_checks;
	return 0;
}
