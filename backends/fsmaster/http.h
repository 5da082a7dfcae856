/*
 * http.h - one POST to an fs-master. Private to the component.
 */
#ifndef SKV_FSMASTER_HTTP_H
#define SKV_FSMASTER_HTTP_H

#include <stdint.h>

#include <skv/bytes.h>
#include <skv/status.h>

#define FSM_ANSWER_MAX (64u << 10) /* bytes */

/* Names are resolved anew, no proxy is asked, no redirect followed. `token` "" = none. SKV_OK: there is an answer, its
 * status in *http and its body behind what `answer` held; SKV_E_NETWORK: there is none, within timeout_ms; SKV_E_NOMEM.
 * Any thread. */
int skv_fsm_post(const char *url, const char *token, const struct skv_buf *body, uint32_t timeout_ms, long *http,
		 struct skv_buf *answer, struct skv_error *err);

#endif
