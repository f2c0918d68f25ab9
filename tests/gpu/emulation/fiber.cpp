/* Fibers with their own stacks and a minimal context switch. */
#include "fiber.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#if defined(SLC_EMULATION_TSAN)
/* API of ThreadSanitizer's runtime; this file is compiled without its instrumentation. */
extern "C" {
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
void __tsan_acquire(void *object);
void __tsan_release(void *object);
void __tsan_ignore_thread_begin(void);
void __tsan_ignore_thread_end(void);
}
static const unsigned no_order = 1; /* __tsan_switch_to_fiber_no_sync */
#endif

/* Where a suspended stack resumes. */
struct slc_fiber_place {
#if defined(__x86_64__)
    void *stack_pointer;
#else
    ucontext_t context;
#endif
};

struct slc_fiber {
    slc_fiber_place here, resumer;
    unsigned char *mapping;
    size_t mapping_bytes;
    unsigned char *stack; /* lowest byte; SLC_FIBER_STACK of them */
    slc_fiber_fn *function;
    void *argument;
    bool done;
    slc_fiber *outer; /* fiber that was running when this one was resumed */
    void *tsan, *tsan_resumer;
    const void *resumer_stack; /* of AddressSanitizer */
    size_t resumer_stack_bytes;
    void *fake_stack;
};

static thread_local slc_fiber *running;

#if defined(__x86_64__)
/* void slc_fiber_swap(void **from, void *to): saves the callee-saved registers on the current stack
 * and its stack pointer in *from, and resumes at `to`. swapcontext needs two system calls for it,
 * which take twenty times as long as the rest. */
extern "C" void slc_fiber_swap(void **from, void *to);
asm(".text\n"
    ".p2align 4\n"
    ".globl slc_fiber_swap\n"
    ".hidden slc_fiber_swap\n"
    ".type slc_fiber_swap, @function\n"
    "slc_fiber_swap:\n"
    "    pushq %rbp\n"
    "    pushq %rbx\n"
    "    pushq %r12\n"
    "    pushq %r13\n"
    "    pushq %r14\n"
    "    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n"
    "    popq %r14\n"
    "    popq %r13\n"
    "    popq %r12\n"
    "    popq %rbx\n"
    "    popq %rbp\n"
    "    ret\n"
    ".size slc_fiber_swap, . - slc_fiber_swap\n");
#endif

static void swap_places(slc_fiber_place *from, slc_fiber_place *to)
{
#if defined(__x86_64__)
    slc_fiber_swap(&from->stack_pointer, to->stack_pointer);
#else
    swapcontext(&from->context, &to->context);
#endif
}

static void leave(slc_fiber *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
    /* A finished fiber has no fake stack to keep. */
    __sanitizer_start_switch_fiber(fiber->done ? nullptr : &fiber->fake_stack, fiber->resumer_stack,
                                   fiber->resumer_stack_bytes);
#endif
#if defined(SLC_EMULATION_TSAN)
    __tsan_switch_to_fiber(fiber->tsan_resumer, no_order);
#endif
    swap_places(&fiber->here, &fiber->resumer);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fiber->fake_stack, &fiber->resumer_stack,
                                    &fiber->resumer_stack_bytes);
#endif
}

static void enter(void)
{
    slc_fiber *fiber = running;

#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &fiber->resumer_stack, &fiber->resumer_stack_bytes);
#endif
    fiber->function(fiber->argument);
    fiber->done = true;
    leave(fiber);
    abort(); /* a finished fiber is never resumed */
}

[[noreturn]] static void no_memory(void)
{
    perror("emulation: no memory for a fiber");
    abort();
}

slc_fiber *slc_fiber_create(unsigned ordinal)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t stagger = ordinal % 64 * 64;
    slc_fiber *fiber = static_cast<slc_fiber *>(calloc(1, sizeof *fiber));

    if (fiber == nullptr) {
        no_memory();
    }
    fiber->mapping_bytes = page + SLC_FIBER_STACK + page;
    fiber->mapping = static_cast<unsigned char *>(
        mmap(nullptr, fiber->mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (fiber->mapping == MAP_FAILED ||
        mprotect(fiber->mapping + page, fiber->mapping_bytes - page, PROT_READ | PROT_WRITE) != 0) {
        no_memory();
    }
    fiber->stack = fiber->mapping + page + stagger;
    fiber->done = true;
    return fiber;
}

void slc_fiber_destroy(slc_fiber *fiber)
{
    if (fiber != nullptr) {
#if defined(SLC_EMULATION_TSAN)
        if (fiber->tsan != nullptr) {
            __tsan_destroy_fiber(fiber->tsan);
        }
#endif
        munmap(fiber->mapping, fiber->mapping_bytes);
        free(fiber);
    }
}

void slc_fiber_begin(slc_fiber *fiber, slc_fiber_fn *function, void *argument)
{
    fiber->function = function;
    fiber->argument = argument;
    fiber->done = false;
#if defined(__x86_64__)
    /* The words that slc_fiber_swap pops: six registers and the address of `enter`; a call would
     * leave the stack 8 bytes off a multiple of 16. */
    uintptr_t *top = reinterpret_cast<uintptr_t *>(fiber->stack + SLC_FIBER_STACK) - 2;

    *top = reinterpret_cast<uintptr_t>(enter);
    for (int r = 0; r < 6; r++) {
        *--top = 0;
    }
    fiber->here.stack_pointer = top;
#else
    getcontext(&fiber->here.context);
    fiber->here.context.uc_stack.ss_sp = fiber->stack;
    fiber->here.context.uc_stack.ss_size = SLC_FIBER_STACK;
    fiber->here.context.uc_link = nullptr;
    makecontext(&fiber->here.context, enter, 0);
#endif
#if defined(SLC_EMULATION_TSAN)
    /* Created once because it takes a millisecond. For ThreadSanitizer, later work on a fiber is
     * ordered after earlier work on it, which hides one pair of threads of two blocks in many
     * thousands. */
    if (fiber->tsan == nullptr) {
        fiber->tsan = __tsan_create_fiber(0);
    }
#endif
}

bool slc_fiber_resume(slc_fiber *fiber)
{
#if defined(__SANITIZE_ADDRESS__)
    void *fake_stack = nullptr;
#endif

    fiber->outer = running;
    running = fiber;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(&fake_stack, fiber->stack, SLC_FIBER_STACK);
#endif
#if defined(SLC_EMULATION_TSAN)
    fiber->tsan_resumer = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(fiber->tsan, no_order);
#endif
    swap_places(&fiber->resumer, &fiber->here);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
    running = fiber->outer;
    return !fiber->done;
}

void slc_fiber_give_way(void)
{
    leave(running);
}

void slc_fiber_release(const void *object)
{
#if defined(SLC_EMULATION_TSAN)
    __tsan_release(const_cast<void *>(object));
#else
    (void)object;
#endif
}

void slc_fiber_acquire(const void *object)
{
#if defined(SLC_EMULATION_TSAN)
    __tsan_acquire(const_cast<void *>(object));
#else
    (void)object;
#endif
}

void slc_fiber_ignore_begin(void)
{
#if defined(SLC_EMULATION_TSAN)
    __tsan_ignore_thread_begin();
#endif
}

void slc_fiber_ignore_end(void)
{
#if defined(SLC_EMULATION_TSAN)
    __tsan_ignore_thread_end();
#endif
}
