/*
 * rdma_lib.h - the functions of libibverbs and librdmacm as a table, loaded at run time: a client
 * without RDMA needs neither.
 *
 * Posting, polling and asking for events are calls of the device's own table (ibv_post_send,
 * ibv_poll_cq, ibv_req_notify_cq in <infiniband/verbs.h>), and are not in this one. Any thread.
 */
#ifndef SKV_CLIENT_RDMA_LIB_H
#define SKV_CLIENT_RDMA_LIB_H

#include <rdma/rdma_cma.h>

#include <skv/status.h>

#undef ibv_reg_mr /* a macro; the function of that name is what every version has */

/* X(name, result, parameters) */
#define SKV_RDMACM_FUNCTIONS(X)                                                                 \
	X(rdma_create_event_channel, struct rdma_event_channel *, (void))                       \
	X(rdma_destroy_event_channel, void, (struct rdma_event_channel * channel))              \
	X(rdma_create_id, int,                                                                  \
	  (struct rdma_event_channel * channel, struct rdma_cm_id * *id, void *context,         \
	   enum rdma_port_space ps))                                                            \
	X(rdma_destroy_id, int, (struct rdma_cm_id * id))                                       \
	X(rdma_resolve_addr, int,                                                               \
	  (struct rdma_cm_id * id, struct sockaddr * from, struct sockaddr * to, int ms))       \
	X(rdma_resolve_route, int, (struct rdma_cm_id * id, int ms))                            \
	X(rdma_create_qp, int,                                                                  \
	  (struct rdma_cm_id * id, struct ibv_pd * pd, struct ibv_qp_init_attr * attr))         \
	X(rdma_destroy_qp, void, (struct rdma_cm_id * id))                                      \
	X(rdma_connect, int, (struct rdma_cm_id * id, struct rdma_conn_param * param))          \
	X(rdma_get_cm_event, int,                                                               \
	  (struct rdma_event_channel * channel, struct rdma_cm_event * *event))                 \
	X(rdma_ack_cm_event, int, (struct rdma_cm_event * event))                               \
	X(rdma_event_str, const char *, (enum rdma_cm_event_type event))
#define SKV_IBVERBS_FUNCTIONS(X)                                                                \
	X(ibv_query_device, int, (struct ibv_context * verbs, struct ibv_device_attr * attr))   \
	X(ibv_get_device_name, const char *, (struct ibv_device * device))                      \
	X(ibv_alloc_pd, struct ibv_pd *, (struct ibv_context * verbs))                          \
	X(ibv_dealloc_pd, int, (struct ibv_pd * pd))                                            \
	X(ibv_reg_mr, struct ibv_mr *, (struct ibv_pd * pd, void *at, size_t n, int access))    \
	X(ibv_dereg_mr, int, (struct ibv_mr * mr))                                              \
	X(ibv_create_comp_channel, struct ibv_comp_channel *, (struct ibv_context * verbs))     \
	X(ibv_destroy_comp_channel, int, (struct ibv_comp_channel * channel))                   \
	X(ibv_create_cq, struct ibv_cq *,                                                       \
	  (struct ibv_context * verbs, int n, void *context, struct ibv_comp_channel *channel,  \
	   int vector))                                                                         \
	X(ibv_destroy_cq, int, (struct ibv_cq * cq))                                            \
	X(ibv_get_cq_event, int,                                                                \
	  (struct ibv_comp_channel * channel, struct ibv_cq * *cq, void **context))             \
	X(ibv_ack_cq_events, void, (struct ibv_cq * cq, unsigned n))                            \
	X(ibv_modify_qp, int, (struct ibv_qp * qp, struct ibv_qp_attr * attr, int mask))        \
	X(ibv_wc_status_str, const char *, (enum ibv_wc_status status))

struct skv_rdma_lib {
#define SKV_RDMA_MEMBER(name, type, parameters) type(*name) parameters;
	SKV_RDMACM_FUNCTIONS(SKV_RDMA_MEMBER)
	SKV_IBVERBS_FUNCTIONS(SKV_RDMA_MEMBER)
#undef SKV_RDMA_MEMBER
};

/* Loads both at the first call; they stay loaded until the process ends. SKV_E_UNSUPPORTED with the
 * remedy: they are not there, or not those. */
int skv_rdma_load(const struct skv_rdma_lib **out, struct skv_error *err);

#endif
