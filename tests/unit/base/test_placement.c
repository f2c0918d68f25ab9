/* Placement of workers and memory on real and imagined machines, and binding that fails.
 *
 * Placements are computed for topologies defined here, so that they are tested on any machine and
 * without hwloc. Binding is tested on the processors of this process. */
#include "slc_test.h"

#include "base/error/log.h"
#include "base/thread/team.h"
#include "base/thread/thread.h"
#include "base/topology/affinity.h"
#include "base/topology/placement.h"
#include "base/topology/topology.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/mempolicy.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A machine of equal nodes, cores and processors, numbered in order. */
static struct slc_topology imagine(unsigned nodes, unsigned cores, unsigned threads)
{
    struct slc_topology topology = {.core_count = nodes * cores, .node_count = nodes};

    for (unsigned n = 0; n < nodes; n++) {
        for (unsigned c = 0; c < cores; c++) {
            for (unsigned t = 0; t < threads; t++) {
                const unsigned number = topology.processor_count++;

                topology.processors[number] = (struct slc_processor){
                    (uint16_t)number, (uint16_t)(n * cores + c), (uint16_t)n};
            }
        }
    }
    return topology;
}

static void keep(struct slc_topology *topology, const unsigned *numbers, unsigned count)
{
    cpu_set_t allowed;

    CPU_ZERO(&allowed);
    for (unsigned i = 0; i < count; i++) {
        CPU_SET(numbers[i], &allowed);
    }
    slc_topology_keep(topology, &allowed);
}

/* Asserts that workers 0, 1, .. are placed on these processors. */
static void
assert_places(const struct slc_topology *topology, unsigned workers, const unsigned *processors)
{
    struct slc_placement placement;

    slc_placement_make(&placement, topology, workers);
    CU_ASSERT_EQUAL_FATAL(placement.workers, workers);
    for (unsigned w = 0; w < workers; w++) {
        CU_ASSERT_EQUAL(placement.processor[w], processors[w]);
    }
}

static void cores_before_hyperthreads(void)
{
    const struct slc_topology topology = imagine(2, 4, 2);
    struct slc_placement placement;

    assert_places(&topology, 1, (const unsigned[]){0});
    assert_places(&topology, 2, (const unsigned[]){0, 8});
    assert_places(&topology, 3, (const unsigned[]){0, 4, 8});
    assert_places(&topology, 4, (const unsigned[]){0, 4, 8, 12});
    assert_places(&topology, 8, (const unsigned[]){0, 2, 4, 6, 8, 10, 12, 14});
    assert_places(&topology, 10, (const unsigned[]){0, 1, 2, 4, 6, 8, 9, 10, 12, 14});
    assert_places(&topology, 16,
                  (const unsigned[]){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
    slc_placement_make(&placement, &topology, 3);
    CU_ASSERT_EQUAL(placement.node_count, 2);
    CU_ASSERT_EQUAL(placement.first_worker[1], 2);
    CU_ASSERT_EQUAL(placement.first_worker[2], 3);
    slc_placement_make(&placement, &topology, 1);
    CU_ASSERT_EQUAL(placement.node_count, 1);
}

static void one_node(void)
{
    const struct slc_topology topology = imagine(1, 3, 1);
    struct slc_placement placement;

    assert_places(&topology, 1, (const unsigned[]){0});
    assert_places(&topology, 2, (const unsigned[]){0, 2});
    assert_places(&topology, 3, (const unsigned[]){0, 1, 2});
    slc_placement_make(&placement, &topology, 3);
    CU_ASSERT_EQUAL(placement.node_count, 1);
    CU_ASSERT_EQUAL(placement.first_worker[1], 3);
}

static void uneven_processors(void)
{
    struct slc_topology topology = imagine(2, 4, 2);

    /* One whole core of node 0; of node 1 two cores, one of them with its second processor only. */
    keep(&topology, (const unsigned[]){2, 3, 8, 9, 13}, 5);
    CU_ASSERT_EQUAL(topology.processor_count, 5);
    CU_ASSERT_EQUAL(topology.core_count, 3);
    CU_ASSERT_EQUAL(topology.node_count, 2);
    assert_places(&topology, 2, (const unsigned[]){2, 8});
    assert_places(&topology, 3, (const unsigned[]){2, 8, 13});
    assert_places(&topology, 4, (const unsigned[]){2, 3, 8, 13});
    assert_places(&topology, 5, (const unsigned[]){2, 3, 8, 9, 13});
    keep(&topology, (const unsigned[]){13}, 1);
    CU_ASSERT_EQUAL(topology.node_count, 1);
    assert_places(&topology, 1, (const unsigned[]){13});
    keep(&topology, (const unsigned[]){2}, 1);
    CU_ASSERT_EQUAL(topology.processor_count, 0);
}

/* For any number of workers on any machine, each worker has its own processor, and nodes are
 * balanced. */
static void places_are_distinct_and_even(void)
{
    const struct slc_topology topology = imagine(3, 5, 4);

    for (unsigned workers = 1; workers <= topology.processor_count; workers++) {
        struct slc_placement placement;
        bool taken[60] = {false};

        slc_placement_make(&placement, &topology, workers);
        CU_ASSERT_EQUAL_FATAL(placement.workers, workers);
        for (unsigned w = 0; w < workers; w++) {
            CU_ASSERT_FALSE(taken[placement.processor[w]]);
            taken[placement.processor[w]] = true;
        }
        for (unsigned n = 0; n < placement.node_count; n++) {
            const unsigned on_node = placement.first_worker[n + 1] - placement.first_worker[n];

            CU_ASSERT_TRUE(on_node == workers / placement.node_count ||
                           on_node == workers / placement.node_count + 1);
        }
    }
}

static void hwloc_reads_machines(void)
{
    const struct slc_topology want = imagine(2, 4, 2);
    struct slc_topology read;

#ifndef SLC_HAVE_HWLOC
    slc_test_skip("built without hwloc");
    return;
#endif
    setenv("HWLOC_SYNTHETIC", "node:2 core:4 pu:2", 1);
    slc_topology_read(&read);
    CU_ASSERT_EQUAL(read.processor_count, want.processor_count);
    CU_ASSERT_EQUAL(read.core_count, want.core_count);
    CU_ASSERT_EQUAL(read.node_count, want.node_count);
    for (unsigned i = 0; i < want.processor_count; i++) {
        CU_ASSERT_EQUAL(read.processors[i].number, want.processors[i].number);
        CU_ASSERT_EQUAL(read.processors[i].node, want.processors[i].node);
    }
    /* Machines without cores, with more nodes than are supported, and with more processors than a
     * mask has. */
    setenv("HWLOC_SYNTHETIC", "node:2 pu:3", 1);
    slc_topology_read(&read);
    CU_ASSERT_EQUAL(read.core_count, 6);
    setenv("HWLOC_SYNTHETIC", "node:65 core:1 pu:1", 1);
    slc_topology_read(&read);
    CU_ASSERT_EQUAL(read.processor_count, 65);
    CU_ASSERT_EQUAL(read.node_count, 1);
    setenv("HWLOC_SYNTHETIC", "node:2 core:520 pu:1", 1);
    slc_topology_read(&read);
    CU_ASSERT_EQUAL(read.processor_count, CPU_SETSIZE);
    unsetenv("HWLOC_SYNTHETIC");
}

static void this_machine(void)
{
    struct slc_topology topology;
    cpu_set_t allowed;

    slc_topology_allowed(&topology);
    CU_ASSERT_TRUE(slc_thread_allowed(&allowed));
    CU_ASSERT_EQUAL(topology.processor_count, (unsigned)CPU_COUNT(&allowed));
    CU_ASSERT_EQUAL(topology.processor_count, slc_team_default_workers());
    CU_ASSERT_TRUE(topology.core_count >= 1 && topology.core_count <= topology.processor_count);
    CU_ASSERT_TRUE(topology.node_count >= 1 && topology.node_count <= topology.core_count);
    CU_ASSERT_EQUAL(slc_cache_bytes(0), 0);
    CU_ASSERT_EQUAL(slc_cache_bytes(SLC_CACHE_LEVELS + 1), 0);
    CU_ASSERT_TRUE(slc_cache_bytes(2) == 0 || slc_cache_bytes(1) < slc_cache_bytes(2));
}

static void policies(void)
{
    struct slc_topology topology;
    struct slc_placement placement;
    enum slc_pin pin = SLC_PIN_AUTO;

    slc_topology_allowed(&topology);
    slc_placement_choose(&placement, SLC_PIN_NEVER, topology.processor_count);
    CU_ASSERT_EQUAL(placement.workers, 0);
    slc_placement_choose(&placement, SLC_PIN_ALWAYS, topology.processor_count);
    CU_ASSERT_EQUAL(placement.workers, topology.processor_count);
    slc_placement_choose(&placement, SLC_PIN_ALWAYS, topology.processor_count + 1);
    CU_ASSERT_EQUAL(placement.workers, 0);
    slc_placement_choose(&placement, SLC_PIN_AUTO, topology.processor_count);
    CU_ASSERT_EQUAL(placement.workers, topology.node_count > 1 ? topology.processor_count : 0);
    slc_placement_choose(&placement, SLC_PIN_AUTO, 1);
    CU_ASSERT_EQUAL(placement.workers, 0);
    CU_ASSERT_TRUE(slc_pin_parse("always", &pin) && pin == SLC_PIN_ALWAYS);
    CU_ASSERT_FALSE(slc_pin_parse("sometimes", &pin));
    CU_ASSERT_STRING_EQUAL(slc_pin_name(SLC_PIN_NEVER), "never");
}

/* Processors on which the workers of a team may run. */
struct sight {
    pthread_barrier_t barrier;
    cpu_set_t mask[8];
};

static void look(void *context, unsigned worker, unsigned workers)
{
    struct sight *sight = context;

    (void)workers;
    (void)sched_getaffinity(0, sizeof sight->mask[worker], &sight->mask[worker]);
    pthread_barrier_wait(&sight->barrier);
}

static void look_with_team(struct sight *sight, unsigned workers)
{
    struct slc_error err = SLC_ERROR_INIT;

    pthread_barrier_init(&sight->barrier, NULL, workers);
    SLC_ASSERT_OK(slc_team_run(workers, look, sight, &err), &err);
    pthread_barrier_destroy(&sight->barrier);
}

/* A placement of up to 8 workers on the processors of this process. */
static struct slc_placement place_here(void)
{
    struct slc_topology topology;
    struct slc_placement placement;

    slc_topology_allowed(&topology);
    slc_placement_choose(&placement, SLC_PIN_ALWAYS,
                         topology.processor_count < 8 ? topology.processor_count : 8);
    return placement;
}

static void teams_are_bound_and_released(void)
{
    const struct slc_placement placement = place_here();
    cpu_set_t before;
    cpu_set_t after;
    struct sight sight;

    CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof before, &before), 0);
    slc_placement_enter(&placement);
    for (unsigned round = 0; round < 3; round++) {
        look_with_team(&sight, placement.workers);
        for (unsigned w = 0; w < placement.workers; w++) {
            CU_ASSERT_EQUAL(CPU_COUNT(&sight.mask[w]), 1);
            CU_ASSERT_TRUE(CPU_ISSET(placement.processor[w], &sight.mask[w]));
        }
        CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof after, &after), 0);
        CU_ASSERT_TRUE(CPU_EQUAL(&before, &after));
    }
    slc_placement_leave();
    look_with_team(&sight, placement.workers);
    for (unsigned w = 0; w < placement.workers; w++) {
        CU_ASSERT_TRUE(CPU_EQUAL(&before, &sight.mask[w]));
    }
}

static void other_teams_are_left_alone(void)
{
    struct slc_placement placement = place_here();
    cpu_set_t own;
    struct sight sight;

    CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof own, &own), 0);
    placement.workers = placement.workers < 3 ? placement.workers : 3;
    slc_placement_enter(&placement);
    look_with_team(&sight, placement.workers + 1);
    for (unsigned w = 0; w <= placement.workers; w++) {
        CU_ASSERT_TRUE(CPU_EQUAL(&own, &sight.mask[w]));
    }
    placement.workers = 0;
    slc_placement_enter(&placement);
    CU_ASSERT_PTR_NULL(slc_placement_of_team(1));
    slc_placement_leave();
}

static void *look_alone(void *context)
{
    (void)sched_getaffinity(0, sizeof(cpu_set_t), context);
    return NULL;
}

static void threads_do_not_inherit_bindings(void)
{
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_topology topology;
    unsigned processor = CPU_SETSIZE;
    cpu_set_t own;
    cpu_set_t seen;
    pthread_t thread;

    slc_topology_allowed(&topology);
    CU_ASSERT_TRUE(slc_thread_allowed(&own));
    slc_thread_bind(topology.processors[0].number);
    SLC_ASSERT_OK(slc_thread_start(&thread, look_alone, &seen, "a test", &err), &err);
    pthread_join(thread, NULL);
    CU_ASSERT_TRUE(CPU_EQUAL(&own, &seen));
    CU_ASSERT_TRUE(slc_thread_bound(&processor));
    CU_ASSERT_EQUAL(processor, topology.processors[0].number);
    CU_ASSERT_TRUE(slc_thread_allowed(&seen) && CPU_EQUAL(&own, &seen));
    CU_ASSERT_EQUAL(slc_team_default_workers(), (unsigned)CPU_COUNT(&own));
    slc_thread_unbind();
    slc_thread_unbind();
    CU_ASSERT_FALSE(slc_thread_bound(&processor));
}

static void count_message(void *context, enum slc_log_level level, const char *message)
{
    (void)level;
    (void)message;
    ++*(unsigned *)context;
}

/* Nonexistent processors, as for another machine described to hwloc. */
static void refused_binding_is_harmless(void)
{
    struct slc_placement placement = {.workers = 4, .node_count = 1};
    unsigned messages = 0;
    cpu_set_t own;
    struct sight sight;

    CU_ASSERT_TRUE(slc_thread_allowed(&own));
    placement.first_worker[1] = 4;
    for (unsigned w = 0; w < 4; w++) {
        placement.processor[w] = (uint16_t)(CPU_SETSIZE - 2 + w);
    }
    slc_log_set_sink(count_message, &messages);
    slc_placement_enter(&placement);
    look_with_team(&sight, 4);
    slc_placement_leave();
    slc_log_set_sink(NULL, NULL);
    for (unsigned w = 0; w < 4; w++) {
        CU_ASSERT_TRUE(CPU_EQUAL(&own, &sight.mask[w]));
    }
    CU_ASSERT_EQUAL(messages, 1);
}

/* Makes the system refuse to bind threads and memory from now on, as some containers do. */
static bool forbid_binding(void)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mbind, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)};
    const struct sock_fprog filter = {SLC_COUNT(program), program};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

enum { NO_SECCOMP = 77 };

static int bind_where_forbidden(void)
{
    const struct slc_placement placement = {
        .workers = 1, .node_count = 2, .node = {0, 1}, .first_worker = {0, 1, 1}};
    unsigned processor;
    struct slc_buffer buffer;
    cpu_set_t before;
    cpu_set_t after;

    if (!forbid_binding()) {
        return NO_SECCOMP;
    }
    if (sched_getaffinity(0, sizeof before, &before) != 0 ||
        slc_buffer_create(&buffer, 1 << 20, SLC_PAGES_SMALL, NULL) != SLC_OK) {
        return 1;
    }
    slc_placement_enter(&placement);
    slc_thread_bind(0);
    slc_buffer_spread(&buffer);
    memset(buffer.data, 1, buffer.bytes);
    slc_placement_leave();
    slc_buffer_destroy(&buffer);
    return slc_thread_bound(&processor) || sched_getaffinity(0, sizeof after, &after) != 0 ||
           !CPU_EQUAL(&before, &after);
}

static void forbidden_binding_is_harmless(void)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        _exit(bind_where_forbidden());
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_TRUE_FATAL(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_SECCOMP) {
        slc_test_skip("the system does not filter calls");
        return;
    }
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

/* The memory policy of an address, or -1. */
static int policy_at(void *address)
{
    int mode = -1;

    return syscall(SYS_get_mempolicy, &mode, NULL, 0UL, address, MPOL_F_ADDR) == 0 ? mode : -1;
}

/* Returns a node whose memory this process may use; in some containers not the first node. */
static uint16_t allowed_node(void)
{
    unsigned long nodes[64] = {0};
    const size_t bits = sizeof nodes[0] * 8;

    if (syscall(SYS_get_mempolicy, NULL, nodes, sizeof nodes * 8, NULL, MPOL_F_MEMS_ALLOWED) == 0) {
        for (size_t n = 0; n < SLC_MAX_NODES; n++) {
            if ((nodes[n / bits] >> n % bits & 1) != 0) {
                return (uint16_t)n;
            }
        }
    }
    return 0;
}

static void buffers_are_spread(void)
{
    /* Both nodes of the placement have the number of one existing node. */
    const uint16_t node = allowed_node();
    struct slc_placement placement = {
        .workers = 2, .node_count = 2, .node = {node, node}, .first_worker = {0, 1, 2}};
    struct slc_error err = SLC_ERROR_INIT;
    struct slc_buffer buffer;
    bool told;

    SLC_ASSERT_OK(slc_buffer_create(&buffer, 5000000, SLC_PAGES_HUGE, &err), &err);
    told = policy_at(buffer.data) == MPOL_DEFAULT;
    slc_buffer_spread(&buffer);
    CU_ASSERT_TRUE(!told || policy_at(buffer.data) == MPOL_DEFAULT);
    slc_placement_enter(&placement);
    /* The node does not exist. */
    placement.node[0] = placement.node[1] = SLC_MAX_NODES - 1;
    slc_buffer_spread(&buffer);
    memset(buffer.data, 1, 1 << 20);
    CU_ASSERT_TRUE(!told || policy_at(buffer.data) == MPOL_DEFAULT);
    placement.node[0] = placement.node[1] = node;
    slc_buffer_spread(&buffer);
    memset(buffer.data, 2, buffer.bytes);
    if (told) {
        CU_ASSERT_EQUAL(policy_at(buffer.data), MPOL_INTERLEAVE);
        CU_ASSERT_EQUAL(policy_at((char *)buffer.data + buffer.bytes - 1), MPOL_INTERLEAVE);
    }
    slc_buffer_destroy(&buffer);
    slc_buffer_spread(&buffer); /* the buffer is empty */
    slc_placement_leave();
    if (!told) {
        slc_test_skip("the system has no memory policies, or does not tell them");
    }
}

/* Records which worker processed which part of a range. */
struct handing {
    pthread_barrier_t barrier;
    bool begun[8];
    uint64_t first[8];
    uint8_t marks[1000];
};

static void take_notes(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct handing *handing = context;

    for (uint64_t i = begin; i < end; i++) {
        handing->marks[i]++;
    }
    if (!handing->begun[worker]) {
        handing->begun[worker] = true;
        handing->first[worker] = begin;
        /* Wait, so that no worker gets a second piece before all have their first. */
        pthread_barrier_wait(&handing->barrier);
    }
}

static void nodes_have_their_share_of_ranges(void)
{
    const struct slc_topology topology = imagine(2, 4, 1);

    for (unsigned workers = 2; workers <= 8; workers++) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_placement placement;
        struct handing handing;

        memset(&handing, 0, sizeof handing);
        slc_placement_make(&placement, &topology, workers);
        pthread_barrier_init(&handing.barrier, NULL, workers);
        slc_placement_enter(&placement);
        SLC_ASSERT_OK(slc_team_for(workers, 1000, 7, take_notes, &handing, &err), &err);
        slc_placement_leave();
        pthread_barrier_destroy(&handing.barrier);
        for (unsigned w = 0; w < workers; w++) {
            const uint64_t half = 143 * placement.first_worker[1] / workers * 7;

            CU_ASSERT_EQUAL(handing.first[w] % 7, 0);
            CU_ASSERT_EQUAL(w >= placement.first_worker[1], handing.first[w] >= half);
        }
        for (unsigned i = 0; i < 1000; i++) {
            CU_ASSERT_EQUAL_FATAL(handing.marks[i], 1);
        }
    }
}

static const struct slc_test tests[] = {
    {"cores before hyperthreads", cores_before_hyperthreads},
    {"one node", one_node},
    {"uneven processors", uneven_processors},
    {"places are distinct and even", places_are_distinct_and_even},
    {"hwloc reads machines", hwloc_reads_machines},
    {"this machine", this_machine},
    {"policies", policies},
    {"teams are bound and released", teams_are_bound_and_released},
    {"other teams are left alone", other_teams_are_left_alone},
    {"threads do not inherit bindings", threads_do_not_inherit_bindings},
    {"refused binding is harmless", refused_binding_is_harmless},
    {"forbidden binding is harmless", forbidden_binding_is_harmless},
    {"buffers are spread", buffers_are_spread},
    {"nodes have their share of ranges", nodes_have_their_share_of_ranges},
};

SLC_SUITE(placement)
{
    return slc_test_main("placement", tests, SLC_COUNT(tests), argc, argv);
}
