/* Streams whose work is deferred until a caller waits or queries, and then runs in random order,
 * constrained only by events. Each stream is a fiber; actions of a host thread are ordered before
 * the work it enqueues, and that work before code after a wait for it. */
#include "streams.h"

#include "fiber.h"
#include "scheduler.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <set>
#include <thread>
#include <vector>

struct piece_of_work {
    std::function<void()> run;    /* empty: the piece is an event */
    slc_emulated_event *recorded; /* event of which this is the version-th record */
    slc_emulated_event *awaited;  /* event that must have reached the version first */
    unsigned long long version;
};

struct slc_emulated_stream {
    int device;
    std::deque<std::unique_ptr<piece_of_work>> work;
    slc_fiber *fiber;
    std::unique_ptr<piece_of_work> current;
};

struct slc_emulated_event {
    unsigned long long recorded, reached;
    std::chrono::steady_clock::time_point when;
};

static std::set<slc_emulated_stream *> streams;
static std::set<slc_emulated_event *> events;
static uint64_t random_state = 1;
static std::atomic_flag busy = ATOMIC_FLAG_INIT;

slc_emulation_guard::slc_emulation_guard()
{
    /* The thread that holds the lock runs kernels, so waiting threads leave it the processor. */
    while (busy.test_and_set(std::memory_order_acquire)) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    slc_fiber_ignore_begin();
}

slc_emulation_guard::~slc_emulation_guard()
{
    slc_fiber_ignore_end();
    busy.clear(std::memory_order_release);
}

/* A xorshift generator ([Marsaglia2003]): any order suffices if a seed reproduces it. */
unsigned slc_emulation_draw(unsigned below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state >> 33) % below;
}

void slc_emulation_sow(unsigned seed)
{
    random_state = 0x9e3779b97f4a7c15ULL ^ seed;
}

/* ---- work */

static void stream_main(void *argument)
{
    slc_emulated_stream *stream = static_cast<slc_emulated_stream *>(argument);

    for (;;) {
        piece_of_work *piece = stream->current.get();

        if (piece == nullptr) {
            return; /* the stream ends */
        }
        slc_fiber_acquire(piece);
        if (piece->awaited != nullptr) {
            slc_fiber_acquire(piece->awaited);
        } else if (piece->recorded != nullptr) {
            slc_fiber_release(piece->recorded);
        } else {
            piece->run();
            piece->run = nullptr; /* destroyed here, after all its users have ended */
        }
        slc_fiber_release(&stream->work);
        slc_fiber_give_way();
    }
}

static bool ready(const slc_emulated_stream *stream)
{
    const piece_of_work *first = stream->work.empty() ? nullptr : stream->work.front().get();

    return first != nullptr &&
           (first->awaited == nullptr || first->awaited->reached >= first->version);
}

static void run_first(slc_emulated_stream *stream)
{
    stream->current = std::move(stream->work.front());
    stream->work.pop_front();
    slc_device_memory_open(true);
    slc_fiber_resume(stream->fiber);
    slc_device_memory_open(false);
    if (stream->current->recorded != nullptr) {
        stream->current->recorded->reached = stream->current->version;
        stream->current->recorded->when = std::chrono::steady_clock::now();
    }
    stream->current.reset();
}

bool slc_stream_run_any(void)
{
    std::vector<slc_emulated_stream *> able;

    for (slc_emulated_stream *stream : streams) {
        if (ready(stream)) {
            able.push_back(stream);
        }
    }
    if (able.empty()) {
        return false;
    }
    run_first(able[slc_emulation_draw((unsigned)able.size())]);
    return true;
}

static void run_or_fail(const char *what)
{
    if (!slc_stream_run_any()) {
        slc_emulation_fail("%s waits for ever: every stream waits for an event", what);
    }
}

/* Actions of the host up to here are ordered before the piece; later ones are not. */
static void put(slc_emulated_stream *stream, piece_of_work piece)
{
    stream->work.emplace_back(new piece_of_work(std::move(piece)));
    slc_fiber_release(stream->work.back().get());
}

static slc_emulated_stream *known(cudaStream_t stream)
{
    if (streams.count(stream) == 0) {
        slc_emulation_fail("work on a stream that does not exist (the default stream is not used)");
    }
    return stream;
}

void slc_stream_put(cudaStream_t stream, std::function<void()> run)
{
    put(known(stream), piece_of_work{std::move(run), nullptr, nullptr, 0});
}

/* Runs all work of the stream, and the work of other streams for which it waits. */
static void drain(slc_emulated_stream *stream, const char *call)
{
    while (!stream->work.empty()) {
        run_or_fail(call);
    }
}

void slc_streams_drain(int device, const char *call)
{
    for (slc_emulated_stream *stream : streams) {
        if (stream->device == device) {
            drain(stream, call);
            slc_fiber_acquire(&stream->work);
        }
    }
}

size_t slc_streams_left(void)
{
    return streams.size();
}

size_t slc_events_left(void)
{
    return events.size();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    (void)flags;
    *stream = new slc_emulated_stream{};
    (*stream)->device = slc_emulation_device();
    (*stream)->fiber = slc_fiber_create((unsigned)streams.size());
    slc_fiber_begin((*stream)->fiber, stream_main, *stream);
    streams.insert(*stream);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    if (priority > 0 || priority < -5) {
        return slc_emulation_remember(cudaErrorInvalidValue);
    }
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    slc_emulation_guard lock;

    drain(known(stream), "cudaStreamDestroy");
    slc_fiber_resume(stream->fiber); /* a stream without work ends */
    slc_fiber_destroy(stream->fiber);
    streams.erase(stream);
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    drain(known(stream), "cudaStreamSynchronize");
    slc_fiber_acquire(&stream->work);
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    known(stream);
    if (!stream->work.empty() && slc_emulation_draw(2) != 0) {
        (void)slc_stream_run_any();
    }
    if (!stream->work.empty()) {
        return slc_emulation_remember(cudaErrorNotReady);
    }
    slc_fiber_acquire(&stream->work);
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    slc_streams_drain(slc_emulation_device(), "cudaDeviceSynchronize");
    return cudaSuccess;
}

/* ---- events */

static slc_emulated_event *known(cudaEvent_t event)
{
    if (events.count(event) == 0) {
        slc_emulation_fail("an event that does not exist");
    }
    return event;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    (void)flags;
    *event = new slc_emulated_event{};
    events.insert(*event);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    slc_emulation_guard lock;

    known(event);
    while (event->reached < event->recorded) {
        run_or_fail("cudaEventDestroy");
    }
    for (slc_emulated_stream *stream : streams) {
        for (const auto &piece : stream->work) {
            if (piece->awaited == event) {
                slc_emulation_fail("an event is destroyed that a stream will wait for");
            }
        }
    }
    events.erase(event);
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    known(event)->recorded++;
    put(known(stream), piece_of_work{nullptr, event, nullptr, event->recorded});
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    (void)flags;
    /* As on a device: waiting for an event that was never recorded does nothing. */
    put(known(stream), piece_of_work{nullptr, nullptr, known(event), event->recorded});
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    known(event);
    while (event->reached < event->recorded) {
        run_or_fail("cudaEventSynchronize");
    }
    slc_fiber_acquire(event);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    known(event);
    if (event->reached < event->recorded && slc_emulation_draw(2) != 0) {
        (void)slc_stream_run_any();
    }
    if (event->reached < event->recorded) {
        return slc_emulation_remember(cudaErrorNotReady);
    }
    slc_fiber_acquire(event);
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    slc_emulation_guard lock;

    if (slc_emulation_refused(cudaErrorLaunchFailure)) {
        return cudaErrorLaunchFailure;
    }
    if (known(start)->reached == 0 || known(end)->reached < end->recorded) {
        return slc_emulation_remember(cudaErrorNotReady);
    }
    *milliseconds = std::chrono::duration<float, std::milli>(end->when - start->when).count();
    return cudaSuccess;
}
