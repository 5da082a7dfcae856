/*
 * http.h - one POST to an fs-master. Private to the component.
 */
#ifndef KVB_FSMASTER_HTTP_H
#define KVB_FSMASTER_HTTP_H

#include <stdint.h>

#include <kvb/bytes.h>
#include <kvb/status.h>

#define FSM_ANSWER_MAX (64u << 10) /* bytes */

/* Names are resolved anew, no proxy is asked, no redirect followed. `token` "" = none. KVB_OK: there is an answer, its
 * status in *http and its body behind what `answer` held; KVB_E_NETWORK: there is none, within timeout_ms; KVB_E_NOMEM.
 * Any thread. */
int kvb_fsm_post(const char *url, const char *token, const struct kvb_buf *body, uint32_t timeout_ms, long *http,
		 struct kvb_buf *answer, struct kvb_error *err);

#endif
