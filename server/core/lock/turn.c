/* turn.c - waiting and waking of the core's threads, and the administrators' turn. */
#include <lock/turn.h>

#include <assert.h>

#include <lock/core.h>

bool core_wait(struct skv_core *c, uint32_t ms, const bool *wake)
{
	bool go_on;

	skv_mutex_lock(&c->turn_lock);
	if (!c->stop && !(wake && *wake))
		skv_cond_wait_ms(&c->turn_wake, &c->turn_lock, ms);
	go_on = !c->stop;
	skv_mutex_unlock(&c->turn_lock);
	return go_on;
}

bool core_pause(struct skv_core *c, uint32_t ms)
{
	if (!c->o.manual)
		return core_wait(c, ms, NULL);
	c->events->step(c);
	return true;
}

void checkpoint_ask(struct skv_core *c)
{
	skv_mutex_lock(&c->turn_lock);
	c->checkpoint_asked = true;
	skv_cond_broadcast(&c->turn_wake);
	skv_mutex_unlock(&c->turn_lock);
}

void checkpoint_begun(struct skv_core *c)
{
	skv_mutex_lock(&c->turn_lock);
	c->checkpoint_asked = false;
	skv_mutex_unlock(&c->turn_lock);
}

void turn_leave(struct skv_core *c)
{
	skv_log_partition(c->admin_log);
	skv_mutex_lock(&c->turn_lock);
	assert(c->admin_busy);
	c->admin_busy = false;
	skv_cond_broadcast(&c->turn_wake);
	skv_mutex_unlock(&c->turn_lock);
}

bool turn_try(struct skv_core *c)
{
	bool got;

	skv_mutex_lock(&c->turn_lock);
	got = !c->admin_busy;
	c->admin_busy = true;
	if (got)
		c->admin_log = core_log(c);
	skv_mutex_unlock(&c->turn_lock);
	return got;
}

void turn_take(struct skv_core *c)
{
	skv_mutex_lock(&c->turn_lock);
	while (c->admin_busy)
		skv_cond_wait(&c->turn_wake, &c->turn_lock);
	c->admin_busy = true;
	c->admin_log = core_log(c);
	skv_mutex_unlock(&c->turn_lock);
}
