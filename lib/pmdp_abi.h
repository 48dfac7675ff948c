// SPDX-License-Identifier: Apache-2.0
// Copyright (c) 2026 the pmdpulse authors
/*
 * Layout of a pmdpulse segment: the bytes that a publisher and its readers agree on.
 *
 * A segment is one file on a tmpfs. NAME.ring is written by the process whose threads are watched,
 * NAME.incidents by the agent. Both begin with struct pmdp_header_shm, which lists the sections
 * that follow; a reader looks a section up by its kind, ignores the kinds that it does not know,
 * and uses the item size found in the header as the stride, so that a later version can append
 * fields.
 *
 * This header holds layout only: no function, no pointer, no enum, bool or long. All integers are
 * little-endian (x86-64 and aarch64; a big-endian writer has another magic and is refused). Times
 * are nanoseconds of CLOCK_MONOTONIC (_ns), or units of the segment's beat clock (_ticks, see
 * PMDP_CLOCK_*); wall-clock time (_realtime_us) stands only in incidents. Holes are named reserved
 * and are written as 0. docs/abi.md is the byte map, tests/unit/abi.txt the table that a test
 * compares with offsetof; a change of either is a new PMDP_ABI_VERSION.
 *
 * Each field says who writes it and in which order. W: writer. R: always "any reader, by pread".
 * "lane" is the one thread that claimed the lane. "owner" is the publisher's housekeeping (control
 * thread). "seq" means under the sequence word of the same struct (docs/protocol.md: S1/S2).
 */
#ifndef PMDP_ABI_H
#define PMDP_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#include <atomic>
typedef std::atomic<uint64_t> pmdp_atomic_u64; // the same bytes
#else
#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
typedef _Atomic uint64_t pmdp_atomic_u64;
#endif

// "PMDPULSE" read as a little-endian number. Stored last, with release (label M1 pairs with M2).
#define PMDP_MAGIC UINT64_C(0x45534c5550444d50)
#define PMDP_ABI_VERSION 1

// pmdp_header_shm.segment_kind
#define PMDP_SEGMENT_RING 1
#define PMDP_SEGMENT_INCIDENTS 2

// pmdp_header_shm.clock_kind: the unit of every _ticks field of this segment.
#define PMDP_CLOCK_MONOTONIC 0 // nanoseconds of CLOCK_MONOTONIC
#define PMDP_CLOCK_TSC 1       // cycles of an invariant time stamp counter

// pmdp_header_shm.flags
#define PMDP_FLAG_KEEPALIVE UINT64_C(1) // threads beat; clear: nobody is judged

#define PMDP_INSTANCE_BYTES 64
#define PMDP_NAME_BYTES 64 // port names: 63 bytes and the closing 0
#define PMDP_LANE_NAME_BYTES 32

#define PMDP_N_SECTIONS 8
#define PMDP_SECTION_HOT 1       // struct pmdp_hot_shm, one per lane
#define PMDP_SECTION_LANES 2     // struct pmdp_lane_shm, one per lane
#define PMDP_SECTION_RECORDS 3   // struct pmdp_record_shm, records_per_lane for each lane
#define PMDP_SECTION_PORTS 4     // struct pmdp_port_shm
#define PMDP_SECTION_EVENTS 5    // struct pmdp_event_shm, a ring (incidents segment)
#define PMDP_SECTION_INCIDENTS 6 // struct pmdp_event_shm, the open incidents (incidents segment)

// Bounds that every reader enforces before it believes a count.
#define PMDP_MAX_LANES 4096
#define PMDP_MAX_PORTS 1024
#define PMDP_MAX_RECORDS_PER_LANE 65536
#define PMDP_MAX_EVENTS 65536
#define PMDP_MAX_SEGMENT_BYTES (UINT64_C(1) << 30)

struct pmdp_section_shm {
	uint32_t kind; // PMDP_SECTION_*, 0 = unused
	uint32_t n_items;
	uint32_t item_size_bytes; // stride, a multiple of 64
	uint32_t reserved;
	uint64_t offset_bytes; // from the start of the file, a multiple of 64
};

// A cycle count and the CLOCK_MONOTONIC time at which it was read, refreshed by the owner several
// times a second because a fixed frequency drifts about a millisecond in twenty minutes.
struct pmdp_clock_pair_shm {
	pmdp_atomic_u64 seq;      // W: owner, odd while writing (S1/S2)
	pmdp_atomic_u64 ticks;    // W: owner, seq
	pmdp_atomic_u64 mono_ns;  // W: owner, seq
	pmdp_atomic_u64 ticks_hz; // W: owner, seq; 1000000000 for PMDP_CLOCK_MONOTONIC
};

struct pmdp_header_shm {
	// Constant once the magic stands.
	pmdp_atomic_u64 magic; // W: creator, release (M1)
	uint32_t abi_version;
	uint32_t segment_kind; // PMDP_SEGMENT_*
	uint64_t segment_size_bytes;
	uint32_t header_size_bytes;
	uint32_t clock_kind; // PMDP_CLOCK_*
	// grows with every creation of this name; milliseconds of wall-clock time or more
	uint64_t generation;
	uint32_t writer_pid;         // in the pid namespace below
	uint32_t records_per_lane;   // a power of two
	uint64_t writer_start_ticks; // field 22 of /proc/PID/stat, tells a recycled pid
	uint64_t pidns_inode;        // st_ino of /proc/self/ns/pid
	uint8_t boot_id[16];         // /proc/sys/kernel/random/boot_id
	uint64_t created_realtime_us;
	uint64_t reserved0[4];
	char instance[PMDP_INSTANCE_BYTES]; // NUL terminated
	struct pmdp_section_shm sections[PMDP_N_SECTIONS];
	uint8_t reserved1[136];

	// Changes while the segment lives.
	// W: owner, relaxed; the publisher's own sign of life
	alignas(128) pmdp_atomic_u64 alive_ns;
	pmdp_atomic_u64 flags; // W: owner, release (K1); PMDP_FLAG_*
	// W: owner, relaxed; one interval = MISSING, two = DEAD
	pmdp_atomic_u64 keepalive_interval_ns;
	pmdp_atomic_u64 gap_limit_ns; // W: owner, relaxed; gaps from here up become records
	pmdp_atomic_u64 stopped_ns; // W: owner, release (T1); not 0: clean stop, before the unlink
	// W: agent, release (R1/R2); events published so far (incidents segment)
	pmdp_atomic_u64 n_events;
	uint64_t reserved2[2];
	struct pmdp_clock_pair_shm clock;
	uint64_t reserved3[52];
};

// Breadcrumb: what the thread was about to do, packed in one word so that one store publishes it.
// bits 0-15 stage, 16-31 port (ofport), 32-47 queue, 48-63 table or 0.
#define PMDP_STAGE_NONE 0
#define PMDP_STAGE_RX 1        // receiving from port, queue
#define PMDP_STAGE_PROCESS 2   // classifying and acting on packets of port, queue
#define PMDP_STAGE_TX 3        // sending to port
#define PMDP_STAGE_UPCALL 4    // slow path of the datapath
#define PMDP_STAGE_HOUSEKEEP 5 // statistics, plan check
#define PMDP_STAGE_RELOAD 6    // taking over a new plan
#define PMDP_STAGE_USER 7      // a foreign program's own code

// Announced state, packed in one word: bits 0-7 PMDP_ANNOUNCE_*, 8-15 PMDP_REASON_*.
#define PMDP_ANNOUNCE_NONE 0    // lane not in use
#define PMDP_ANNOUNCE_POLLING 1 // beats are due
#define PMDP_ANNOUNCE_DOZING 2  // pause with a reason, back before deadline_ns
#define PMDP_ANNOUNCE_SLEEP 3   // waits without work, no deadline
#define PMDP_ANNOUNCE_EXITED 4  // ended on purpose

#define PMDP_REASON_NONE 0
#define PMDP_REASON_START 1
#define PMDP_REASON_RECONFIGURATION 2
#define PMDP_REASON_POWER_SAVING 3
#define PMDP_REASON_NO_QUEUE 4
#define PMDP_REASON_STOP 5

/*
 * The hot slot of a lane: everything that the judgement needs, so that one read of this table is
 * one look at all threads. 128 bytes, because the spatial prefetcher pairs 64-byte lines. Written
 * by the lane alone, with plain relaxed stores, in this order: an announcement before the beats
 * stop, the gap fields before the beat that ends the gap, lengths before the counts that tell of
 * them: within the slot from high to low addresses, while a look reads from low to high. POLLING is
 * the exception (the beat first, then the word): docs/protocol.md, H1 to H4. beats == 0: the thread
 * never beat.
 */
struct pmdp_hot_shm {
	alignas(128) pmdp_atomic_u64 beats; // W: lane, relaxed; one per iteration, wraps
	pmdp_atomic_u64 beat_ticks;         // W: lane, relaxed; beat clock at that beat
	pmdp_atomic_u64 crumb;              // W: lane, relaxed; breadcrumb
	pmdp_atomic_u64 announce; // W: lane, relaxed; PMDP_ANNOUNCE_* | PMDP_REASON_* << 8
	// W: lane, relaxed, before announce; CLOCK_MONOTONIC, 0 = none; DOZING only
	pmdp_atomic_u64 deadline_ns;
	pmdp_atomic_u64 incarnation; // W: lane, relaxed; grows with every claim of this lane
	pmdp_atomic_u64 n_gaps;      // W: lane, relaxed; self-timed gaps >= gap_limit_ns
	pmdp_atomic_u64 gap_ticks;   // W: lane, relaxed; their sum
	pmdp_atomic_u64 n_stalls;    // W: lane, relaxed; of these, gaps >= two keepalive intervals
	pmdp_atomic_u64 stall_ticks; // W: lane, relaxed; their sum
	pmdp_atomic_u64 last_stall_ticks;  // W: lane, relaxed; length of the newest stall
	pmdp_atomic_u64 longest_gap_ticks; // W: lane, relaxed; since the claim
	pmdp_atomic_u64 n_records;         // W: lane, release (R1/R2); records written so far
	uint64_t reserved[3];
};

// pmdp_lane_body.kind
#define PMDP_LANE_PMD 1     // polls receive queues
#define PMDP_LANE_CONTROL 2 // a thread that beats but handles no packet

// Index into pmdp_lane_body.counters. Append only.
#define PMDP_C_ITERATIONS 0
#define PMDP_C_RX_PACKETS 1
#define PMDP_C_RX_BATCHES 2
#define PMDP_C_TX_PACKETS 3
#define PMDP_C_TX_BATCHES 4
#define PMDP_C_BUSY_TICKS 5
#define PMDP_C_IDLE_TICKS 6
#define PMDP_C_SLEEP_TICKS 7
#define PMDP_C_RECIRCULATIONS 8
#define PMDP_C_PHWOL_HITS 9
#define PMDP_C_EMC_HITS 10
#define PMDP_C_SMC_HITS 11
#define PMDP_C_MEGAFLOW_HITS 12
#define PMDP_C_MISSES 13
#define PMDP_C_LOST 14
#define PMDP_C_MALFORMED 15
#define PMDP_C_N_RXQ 16            // gauge: receive queues polled now
#define PMDP_C_IN_FLIGHT 17        // gauge: received, not yet sent or dropped
#define PMDP_C_KEEPALIVE 18        // gauge: 1 while this thread beats
#define PMDP_C_EMC_ENTRIES 19      // gauge: in use in the exact-match cache
#define PMDP_C_SMC_ENTRIES 20      // gauge: in use in the signature-match cache
#define PMDP_C_MEGAFLOWS 21        // gauge: flows of the classifier
#define PMDP_C_SHAPES 22           // gauge: their distinct masks, over all input ports
#define PMDP_C_MARKS 23            // gauge: of these flows, those that a device marks
#define PMDP_C_DROP0 24            // 24..39: drops by reason, PMDP_DROP_*
#define PMDP_C_FLOW_LIMIT_HITS 40  // misses without a new flow: there are flow-limit of them
#define PMDP_C_SHAPE_LIMIT_HITS 41 // misses without a new flow: too many masks at the port
#define PMDP_C_RUN_HITS 42         // hits that took over the result of the packet before
#define PMDP_C_LOOKUPS 43          // subtables visited for megaflow hits and misses
#define PMDP_C_UPCALL_TICKS 44     // time in misses and revalidation, part of busy
#define PMDP_C_COPIES 45           // packets made by actions: rx + copies = tx + drops + in flight
#define PMDP_N_COUNTERS 48

// Drop reasons, the same index in lanes and ports. Append only.
#define PMDP_DROP_NO_RULE 0
#define PMDP_DROP_ACTION 1 // actions=drop
#define PMDP_DROP_TX_QUEUE_FULL 2
#define PMDP_DROP_MTU 3
#define PMDP_DROP_METER 4
#define PMDP_DROP_QOS 5
#define PMDP_DROP_PORT_DOWN 6 // output port absent, down or removed
#define PMDP_DROP_QUEUE_DISABLED 7
#define PMDP_DROP_MALFORMED 8
#define PMDP_DROP_RECIRC_LIMIT 9
#define PMDP_DROP_NO_MEMORY 10
#define PMDP_N_DROPS 16

// Bin n of the gap histogram counts gaps of [2^n, 2^(n+1)) ns; bins below PMDP_HIST_FLOOR_BIN are
// not counted one by one (they are iterations minus the rest).
#define PMDP_N_HIST 48
#define PMDP_HIST_FLOOR_BIN 14 // 16.4 us

// What a lane says about itself. One snapshot is consistent in itself.
struct pmdp_lane_body {
	// the thread's name, as in /proc/PID/task/TID/comm or longer
	char name[PMDP_LANE_NAME_BYTES];
	uint32_t kind;               // PMDP_LANE_*
	uint32_t tid;                // kernel thread id in the header's pid namespace
	int32_t core;                // CPU it is bound to, -1 = none
	int32_t numa;                // -1 = unknown
	uint64_t thread_start_ticks; // field 22 of /proc/PID/task/TID/stat
	uint64_t snapshot_ticks;     // beat clock when this copy was made
	uint64_t counters[PMDP_N_COUNTERS];
	uint64_t gap_hist[PMDP_N_HIST];
};

struct pmdp_lane_shm {
	// W: claimer, read-modify-write (the only one, C1/C2); 0 free, else tid
	alignas(64) pmdp_atomic_u64 claimed;
	pmdp_atomic_u64 seq; // W: lane, odd while writing (S1/S2)
	uint64_t reserved0[6];
	struct pmdp_lane_body body; // W: lane, seq, in relaxed 64-bit words
	uint64_t reserved1[16];
};

// pmdp_record_body.kind
#define PMDP_RECORD_GAP 1      // self-timed gap: begin_ticks .. begin_ticks + length_ticks
#define PMDP_RECORD_ANNOUNCE 2 // value0 = the announce word, value1 = deadline_ns

struct pmdp_record_body {
	uint32_t kind;
	uint32_t reserved;
	uint64_t begin_ticks;
	uint64_t length_ticks;
	uint64_t crumb; // the newest breadcrumb when the gap was timed
	uint64_t value0;
	uint64_t value1;
};

// Record number n of a lane stands at index n % records_per_lane of its ring. seq is 2n + 1 while
// it is written and 2n + 2 when whole: a reader proves a record whole and counts what it missed.
struct pmdp_record_shm {
	alignas(64) pmdp_atomic_u64 seq; // W: lane (R3/R4)
	struct pmdp_record_body body;    // W: lane, relaxed
	uint64_t reserved;
};

// pmdp_port_body.admin_state, link_state
#define PMDP_LINK_UNKNOWN 0
#define PMDP_LINK_DOWN 1
#define PMDP_LINK_UP 2

// Index into pmdp_port_body.counters. Append only.
#define PMDP_P_RX_PACKETS 0
#define PMDP_P_RX_BYTES 1
#define PMDP_P_RX_ERRORS 2
#define PMDP_P_RX_MISSED 3 // the device had no room
#define PMDP_P_RX_NOMBUF 4
#define PMDP_P_TX_PACKETS 5
#define PMDP_P_TX_BYTES 6
#define PMDP_P_TX_ERRORS 7
#define PMDP_P_TX_RETRIES 8
#define PMDP_P_LINK_CHANGES 9
#define PMDP_P_DROP0 16 // 16..31: drops by reason, PMDP_DROP_*
#define PMDP_P_N_COUNTERS 40

struct pmdp_port_body {
	char name[PMDP_NAME_BYTES];
	uint32_t ofport; // OpenFlow port number
	uint32_t admin_state;
	uint32_t link_state;
	uint32_t link_speed_mbps; // 0 = unknown
	uint32_t n_rxq;
	uint32_t n_txq;
	uint32_t mtu;
	uint32_t reserved;
	uint64_t snapshot_ns;
	uint64_t counters[PMDP_P_N_COUNTERS];
};

struct pmdp_port_shm {
	alignas(64) pmdp_atomic_u64 seq; // W: owner, odd while writing (S1/S2)
	// W: owner, seq; grows when the slot gets a port, 0 = never used
	pmdp_atomic_u64 slot_generation;
	pmdp_atomic_u64 in_use; // W: owner, seq; 0 = free
	uint64_t reserved[5];
	struct pmdp_port_body body; // W: owner, seq, in relaxed 64-bit words
	uint64_t reserved1[11];
};

// pmdp_evidence.type
#define PMDP_EVIDENCE_NONE 0
#define PMDP_EVIDENCE_INT 1
#define PMDP_EVIDENCE_REAL 2
#define PMDP_EVIDENCE_TEXT 3

#define PMDP_EVIDENCE_KEY_BYTES 24
#define PMDP_EVIDENCE_TEXT_BYTES 48
#define PMDP_N_EVIDENCE 16

struct pmdp_evidence {
	char key[PMDP_EVIDENCE_KEY_BYTES];
	uint32_t type;
	uint32_t reserved;
	int64_t integer; // PMDP_EVIDENCE_INT
	double real;     // PMDP_EVIDENCE_REAL
	char text[PMDP_EVIDENCE_TEXT_BYTES];
};

#define PMDP_ID_BYTES 96
#define PMDP_MESSAGE_BYTES 256
#define PMDP_COMM_BYTES 16
#define PMDP_CLASS_BYTES 16

// One event of an incident. The text line, the JSON, the journal fields and the collectd
// notification are renderings of this struct. Absent parts: thread_tid 0 and an empty name,
// culprit_pid 0.
struct pmdp_incident {
	char id[PMDP_ID_BYTES]; // INSTANCE-GENERATION-N, the same for all events of an incident
	uint64_t seq;           // counts every event of one incidents segment
	uint32_t kind;          // PMDP_KIND_* (pmdp_names.h)
	uint32_t phase;         // PMDP_PHASE_*
	uint32_t severity;      // PMDP_SEVERITY_*
	uint32_t cause;         // PMDP_CAUSE_*
	uint32_t state;         // PMDP_STATE_* of the thread, or 0
	uint32_t n_evidence;
	uint64_t started_realtime_us;  // stall start (the last beat), not when it was noticed
	uint64_t detected_realtime_us; // when the raise was decided
	uint64_t emitted_realtime_us;  // when this event was published
	uint64_t duration_ns;
	char instance[PMDP_INSTANCE_BYTES];
	char thread_name[PMDP_LANE_NAME_BYTES];
	uint32_t thread_tid;
	int32_t thread_core;
	char culprit_comm[PMDP_COMM_BYTES];
	char culprit_class[PMDP_CLASS_BYTES]; // SCHED_FIFO, SCHED_OTHER, irq, ...
	uint32_t culprit_pid;
	uint32_t culprit_tid;
	uint64_t culprit_took_ns;
	char message[PMDP_MESSAGE_BYTES];
	char object[PMDP_NAME_BYTES]; // port name of a link or drops incident
	struct pmdp_evidence evidence[PMDP_N_EVIDENCE];
};

// Event number n (from 0) of the ring stands at index n % n_items, with seq as in records. In the
// table of open incidents, seq is a plain sequence word and in_use says whether the slot holds one.
struct pmdp_event_shm {
	alignas(64) pmdp_atomic_u64 seq; // W: agent (R3/R4 in the ring, S1/S2 in the table)
	pmdp_atomic_u64 in_use;          // W: agent, seq; table only
	uint64_t reserved[6];
	struct pmdp_incident body; // W: agent, in relaxed 64-bit words
	uint64_t reserved1;
};

static_assert(sizeof(struct pmdp_header_shm) == 1024, "header");
static_assert(offsetof(struct pmdp_header_shm, alive_ns) == 512, "header, changing part");
static_assert(sizeof(struct pmdp_hot_shm) == 128, "hot slot");
static_assert(sizeof(struct pmdp_lane_shm) == 1024, "lane");
static_assert(sizeof(struct pmdp_record_shm) == 64, "record");
static_assert(sizeof(struct pmdp_port_shm) == 576, "port slot");
static_assert(sizeof(struct pmdp_event_shm) == 2240, "event");

#endif
