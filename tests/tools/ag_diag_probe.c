// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * ag_diag_probe: a polling thread and the smallest judge of it, to test the diagnosis alone.
 *
 *	ag_diag_probe [--core N] [--threshold-ms MS] [--self-ms MS] [--seconds S] [--nice N]
 *	              [--fifo PRIO] [--no-core] [--pause-us US]
 *
 * A child process with one thread that spins on core N and notes its beats; this process looks at
 * them from another core and asks the diagnosis about every stall: when it is threshold old, at the
 * retries that are asked for, and when it ended. Gaps of --self-ms up that no look saw are asked
 * about afterwards, as those that a lane times itself. --pause-us: the thread sleeps between its
 * beats. --no-core: the diagnosis is not told where it is bound. Lines on stdin make the thread
 * misbehave:
 *
 *	loop MS    spin in a function named stuck_in_a_loop
 *	nap MS     sleep in the kernel
 *	pipe MS    wait for a pipe
 *	exit       end the thread         quit       end
 *
 * Prints JSON lines: {"ready": {"pid","tid"}}, {"did": {"begin_ns","end_ns","ran_ns"}} (the truth
 * about a misbehaviour; ran_ns by the thread's own CPU clock) and {"stall": {"begin_ns","end_ns",
 * "raise_us","calls","max_us","raised": incident, "final": incident}}.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ag_diag.h"
#include "pmdp_clock.h"
#include "pmdp_json.h"

#define N_GAPS 256

enum order {
	ORDER_NONE,
	ORDER_LOOP,
	ORDER_NAP,
	ORDER_PIPE,
	ORDER_EXIT
};

// Shared by the judge and the child.
struct shared {
	_Atomic uint64_t beat_ns;
	_Atomic uint32_t tid;
	_Atomic int order;
	_Atomic uint64_t order_ms;
	_Atomic uint64_t n_gaps, n_done;
	_Atomic uint64_t gap_begin_ns[N_GAPS], gap_end_ns[N_GAPS];
	_Atomic uint64_t done_begin_ns, done_end_ns, done_ran_ns;
};

static struct {
	int core, nice, fifo;
	bool is_coreless;
	uint64_t threshold_ns, self_ns, pause_ns, seconds;
} opt = {.core = 1, .nice = -20, .threshold_ns = 20000000, .seconds = 30};

static struct shared *shared;

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u)};

	nanosleep(&ts, NULL);
}

// Its name is what the sampled function must be.
#ifdef __clang__
#define ONE_PIECE __attribute__((noinline))
#else
#define ONE_PIECE __attribute__((noinline, noclone)) // a clone has another name
#endif
uint64_t stuck_in_a_loop(uint64_t until_ns);
ONE_PIECE uint64_t stuck_in_a_loop(uint64_t until_ns)
{
	uint64_t sum = 0;
	uint32_t i;

	do
		for (i = 0; i < 100000; i++)
			sum += i ^ (sum << 1);
	while (pmdp_mono_now_ns() < until_ns);
	return sum;
}

static void wait_for_pipe(uint64_t ms)
{
	int fds[2];
	struct pollfd poller;

	if (pipe(fds))
		return;
	poller = (struct pollfd){.fd = fds[0], .events = POLLIN};
	poll(&poller, 1, (int)ms);
	close(fds[0]);
	close(fds[1]);
}

static void obey(int order)
{
	uint64_t ms = atomic_load(&shared->order_ms), ran_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	atomic_store(&shared->done_begin_ns, pmdp_mono_now_ns());
	switch (order) {
	case ORDER_LOOP:
		stuck_in_a_loop(pmdp_mono_now_ns() + ms * 1000000);
		break;
	case ORDER_NAP:
		sleep_ns(ms * 1000000);
		break;
	case ORDER_PIPE:
		wait_for_pipe(ms);
		break;
	case ORDER_EXIT:
		pthread_exit(NULL);
	}
	atomic_store(&shared->done_end_ns, pmdp_mono_now_ns());
	atomic_store(&shared->done_ran_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID) - ran_ns);
	atomic_store(&shared->order, ORDER_NONE);
	atomic_fetch_add(&shared->n_done, 1);
}

static void *poll_thread(void *arg)
{
	struct sched_param param = {.sched_priority = opt.fifo};
	uint64_t last_ns, now, n;
	cpu_set_t cpus;
	int order;

	(void)arg;
	CPU_ZERO(&cpus);
	CPU_SET(opt.core, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	prctl(PR_SET_NAME, "poll-probe");
	if (opt.fifo && sched_setscheduler(0, SCHED_FIFO, &param))
		perror("sched_setscheduler");
	else if (!opt.fifo && setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), opt.nice))
		perror("setpriority");
	last_ns = pmdp_mono_now_ns();
	atomic_store(&shared->beat_ns, last_ns);
	atomic_store(&shared->tid, (uint32_t)syscall(SYS_gettid));
	for (;;) {
		order = atomic_load_explicit(&shared->order, memory_order_relaxed);
		if (order != ORDER_NONE)
			obey(order);
		now = pmdp_mono_now_ns();
		if (opt.self_ns && now - last_ns >= opt.self_ns) {
			n = atomic_load(&shared->n_gaps);
			atomic_store(&shared->gap_begin_ns[n % N_GAPS], last_ns);
			atomic_store(&shared->gap_end_ns[n % N_GAPS], now);
			atomic_store(&shared->n_gaps, n + 1);
		}
		atomic_store_explicit(&shared->beat_ns, now, memory_order_relaxed);
		last_ns = now;
		if (opt.pause_ns)
			sleep_ns(opt.pause_ns);
	}
	return NULL;
}

static void be_child(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&thread, NULL, poll_thread, NULL))
		_exit(1);
	for (;;)
		pause();
}

struct stall {
	uint64_t begin_ns, told_end_ns, retry_ns, raise_took_ns, max_took_ns;
	uint32_t n_calls;
	bool is_open, is_ended;
	struct pmdp_incident raised, last;
};

static void explain(struct ag_diag *diag, struct stall *stall, uint64_t end_ns)
{
	struct ag_explain what = {
		.begin_ns = stall->begin_ns, .end_ns = end_ns, .now_ns = pmdp_mono_now_ns()};
	bool is_first = stall->n_calls++ == 0;
	uint64_t took_ns;

	stall->retry_ns = 0;
	if (!ag_diag_explain(diag, &what, &stall->last, &stall->retry_ns))
		stall->retry_ns = 0;
	took_ns = pmdp_mono_now_ns() - what.now_ns;
	if (took_ns > stall->max_took_ns)
		stall->max_took_ns = took_ns;
	if (is_first) {
		stall->raise_took_ns = took_ns;
		stall->raised = stall->last;
	}
}

static void set_up(struct stall *stall, uint64_t begin_ns)
{
	memset(stall, 0, sizeof(*stall));
	stall->begin_ns = begin_ns;
	stall->is_open = true;
	pmdp_incident_init(&stall->last, "probe", PMDP_KIND_PMD_STALL, PMDP_PHASE_RAISE);
	pmdp_incident_thread(&stall->last, "poll-probe", atomic_load(&shared->tid), opt.core);
}

static void print(struct stall *stall)
{
	char *raised, *last;

	stall->last.duration_ns = stall->told_end_ns - stall->begin_ns;
	pmdp_incident_compose(&stall->last);
	raised = pmdp_json_incident_line(&stall->raised);
	last = pmdp_json_incident_line(&stall->last);
	printf("{\"stall\": {\"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64
	       ", \"raise_us\": %.1f, \"calls\": %u, \"max_us\": %.1f, \"raised\": %s, \"final\": "
	       "%s}}\n",
	       stall->begin_ns, stall->told_end_ns, (double)stall->raise_took_ns / 1e3,
	       stall->n_calls, (double)stall->max_took_ns / 1e3, raised, last);
	fflush(stdout);
	free(raised);
	free(last);
	stall->is_open = false;
}

static void read_orders(bool *is_ending)
{
	struct pollfd poller = {.fd = 0, .events = POLLIN};
	static const char *const names[] = {"", "loop", "nap", "pipe", "exit"};
	char line[64], word[16];
	unsigned long ms = 0;
	int i;

	if (poll(&poller, 1, 0) != 1)
		return;
	if (!fgets(line, sizeof(line), stdin) || strncmp(line, "quit", 4) == 0) {
		*is_ending = true;
		return;
	}
	if (sscanf(line, "%15s %lu", word, &ms) < 1)
		return;
	for (i = ORDER_LOOP; i <= ORDER_EXIT; i++) {
		if (strcmp(word, names[i]) != 0)
			continue;
		atomic_store(&shared->order_ms, ms);
		atomic_store(&shared->order, i);
	}
}

static void print_done(uint64_t *n_done)
{
	if (atomic_load(&shared->n_done) == *n_done)
		return;
	++*n_done;
	printf("{\"did\": {\"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64 ", \"ran_ns\": %" PRIu64
	       "}}\n",
	       atomic_load(&shared->done_begin_ns), atomic_load(&shared->done_end_ns),
	       atomic_load(&shared->done_ran_ns));
	fflush(stdout);
}

// Gaps that nobody saw while they lasted.
static void look_back(struct ag_diag *diag, uint64_t *n_gaps, uint64_t seen_begin_ns)
{
	uint64_t n = atomic_load(&shared->n_gaps);
	struct stall stall;

	for (; *n_gaps < n; ++*n_gaps) {
		if (atomic_load(&shared->gap_begin_ns[*n_gaps % N_GAPS]) == seen_begin_ns)
			continue;
		set_up(&stall, atomic_load(&shared->gap_begin_ns[*n_gaps % N_GAPS]));
		stall.told_end_ns = atomic_load(&shared->gap_end_ns[*n_gaps % N_GAPS]);
		do {
			if (stall.retry_ns > pmdp_mono_now_ns())
				sleep_ns(stall.retry_ns - pmdp_mono_now_ns());
			explain(diag, &stall, stall.told_end_ns);
		} while (stall.retry_ns);
		print(&stall);
	}
}

static void judge(struct ag_diag *diag, struct stall *stall)
{
	uint64_t beat_ns = atomic_load(&shared->beat_ns), now = pmdp_mono_now_ns();

	if (stall->is_open && !stall->is_ended && beat_ns != stall->begin_ns) {
		stall->is_ended = true;
		// The first beat after the stall; this judge looks a millisecond apart.
		stall->told_end_ns = beat_ns;
		if (opt.self_ns)
			stall->told_end_ns = atomic_load(
				&shared->gap_end_ns[(atomic_load(&shared->n_gaps) - 1) % N_GAPS]);
		explain(diag, stall, stall->told_end_ns);
	} else if (stall->is_open && stall->retry_ns && now >= stall->retry_ns) {
		explain(diag, stall, stall->told_end_ns);
	} else if (!stall->is_open && now > beat_ns && now - beat_ns >= opt.threshold_ns) {
		set_up(stall, beat_ns);
		explain(diag, stall, 0);
	}
	if (stall->is_open && stall->is_ended && !stall->retry_ns)
		print(stall);
}

static void run(struct ag_diag *diag, pid_t pid)
{
	struct ag_thread thread = {pid, (pid_t)atomic_load(&shared->tid),
				   opt.is_coreless ? -1 : opt.core, "poll-probe"};
	uint64_t until_ns = pmdp_mono_now_ns() + opt.seconds * 1000000000u, n_gaps = 0, n_done = 0;
	struct stall stall = {0};
	bool is_ending = false;

	ag_diag_watch(diag, 0, &thread);
	printf("{\"ready\": {\"pid\": %d, \"tid\": %d}}\n", pid, thread.tid);
	fflush(stdout);
	while (!is_ending && pmdp_mono_now_ns() < until_ns) {
		sleep_ns(stall.is_open ? 500000 : 1000000);
		judge(diag, &stall);
		if (!stall.is_open)
			look_back(diag, &n_gaps, stall.begin_ns);
		ag_diag_tick(diag, pmdp_mono_now_ns());
		print_done(&n_done);
		read_orders(&is_ending);
	}
	// A thread that ended never comes back: its stall is told as it is.
	if (stall.is_open) {
		stall.told_end_ns = pmdp_mono_now_ns();
		print(&stall);
	}
}

static void parse(int argc, char **argv)
{
	static const struct option longs[] = {
		{"core", 1, NULL, 'c'},    {"threshold-ms", 1, NULL, 't'},
		{"self-ms", 1, NULL, 'm'}, {"seconds", 1, NULL, 's'},
		{"nice", 1, NULL, 'n'},    {"fifo", 1, NULL, 'f'},
		{"no-core", 0, NULL, 'C'}, {"pause-us", 1, NULL, 'p'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			opt.core = atoi(optarg);
			break;
		case 't':
			opt.threshold_ns = strtoull(optarg, NULL, 10) * 1000000;
			break;
		case 'm':
			opt.self_ns = strtoull(optarg, NULL, 10) * 1000000;
			break;
		case 's':
			opt.seconds = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			opt.nice = atoi(optarg);
			break;
		case 'f':
			opt.fifo = atoi(optarg);
			break;
		case 'p':
			opt.pause_ns = strtoull(optarg, NULL, 10) * 1000;
			break;
		case 'C':
			opt.is_coreless = true;
			break;
		default:
			fputs("usage: see the head of ag_diag_probe.c\n", stderr);
			exit(2);
		}
	}
}

// Where autogroup scheduling is on (sched(7)), nice counts only within a session.
static void raise_session(void)
{
	FILE *file;

	if (setsid() < 0 && getsid(0) != getpid())
		return;
	file = fopen("/proc/self/autogroup", "we");
	if (!file)
		return;
	fprintf(file, "%d", opt.nice);
	fclose(file);
}

// The judge and its helper thread must not take the time that they judge about.
static void leave_core(void)
{
	cpu_set_t cpus;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) || CPU_COUNT(&cpus) < 2)
		return;
	CPU_CLR(opt.core, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

int main(int argc, char **argv)
{
	struct ag_diag *diag;
	const char *rights[16];
	uint32_t n, i;
	pid_t pid;

	parse(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED) {
		perror("ag_diag_probe: mmap");
		return 1;
	}
	raise_session();
	pid = fork();
	if (pid == 0)
		be_child();
	leave_core();
	setpriority(PRIO_PROCESS, 0, -20);
	mlockall(MCL_CURRENT | MCL_FUTURE); // as the agent does
	while (pid > 0 && atomic_load(&shared->tid) == 0 && kill(pid, 0) == 0)
		sleep_ns(1000000);
	if (pid < 0 || ag_diag_new(&diag)) {
		fputs("ag_diag_probe: no memory\n", stderr);
		return 1;
	}
	n = ag_diag_rights(diag, rights, 16);
	for (i = 0; i < n; i++)
		fprintf(stderr, "right: %s\n", rights[i]);
	run(diag, pid);
	ag_diag_free(diag);
	kill(pid, SIGKILL);
	kill(pid, SIGCONT);
	waitpid(pid, NULL, 0);
	return 0;
}
