/*
 * pace.c - the minimum rate of a peer. See pace.h. No state of its own.
 *
 * The kernel's count of received bytes is used: it includes bytes that wait for a thread of this
 * process, so a slow manager does not blame its clients.
 */
#include <skv/pace.h>

#include <linux/tcp.h> /* newer than the C library's */
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

uint64_t skv_pace_due(const struct skv_pace *p, const struct skv_pace_limit *l)
{
	if (l->bytes_per_s == 0)
		return UINT64_MAX;
	return p->begun ? p->since_ms + l->after_ms : 0;
}

bool skv_pace_keeps(struct skv_pace *p, const struct skv_pace_limit *l, uint64_t now_ms,
		    uint64_t moved)
{
	bool keeps = true;

	if (p->begun && (l->bytes_per_s == 0 || now_ms - p->since_ms < l->after_ms))
		return true;
	if (p->begun)
		keeps = moved - p->bytes >= l->bytes_per_s * (now_ms - p->since_ms) / 1000;
	*p = (struct skv_pace){ now_ms, moved, true };
	return keeps;
}

bool skv_pace_socket(int fd, uint64_t *received, uint64_t *taken)
{
	struct tcp_info info;
	socklen_t n = sizeof info;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) != 0 ||
	    n < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received)
		return false;
	*received = info.tcpi_bytes_received;
	*taken = info.tcpi_bytes_acked;
	return true;
}
