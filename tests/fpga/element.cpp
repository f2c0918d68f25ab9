/* Simulates a processing element of fpga/rtl and the memory at its port.
 *
 * element STALL CASE..: runs each case (written by element_cases.c) and prints one line with the
 * cycles, the beats that the memory moved, and the number of wrong words of the output. In each
 * cycle, the memory is not ready with a probability of STALL / 256; answers are delayed at random
 * then, too. A NaN equals every NaN. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <vector>

#ifdef ELEMENT_MTTKRP
#include "Vmttkrp.h"
using element = Vmttkrp;
#else
#include "Vttm.h"
using element = Vttm;
#endif

namespace
{

/* A case, as element_cases.c writes it; the words of the memory and of the expected output follow.
 */
struct header {
    uint32_t beat_words, memory_latency, limit; /* of cycles */
    uint32_t slice_ptr, fiber_ptr, fiber_index, index, value, fiber_matrix, matrix,
        output; /* beats */
    uint32_t slices, fibers, nonzeros, matrix_rows;
    uint32_t memory_words, output_words;
};

struct answer {
    uint64_t due;
    uint32_t source, address;
};

uint32_t random_state = 1;

/* Returns whether something with a probability of `chance` / 256 happens (xorshift32). */
bool happens(uint32_t chance)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return (random_state >> 24) < chance;
}

void connect(element &unit, const header &head)
{
    unit.fiber_ptr = head.fiber_ptr;
    unit.index = head.index;
    unit.value = head.value;
    unit.result = head.output;
    unit.fibers = head.fibers;
    unit.nonzeros = head.nonzeros;
#ifdef ELEMENT_MTTKRP
    unit.slice_ptr = head.slice_ptr;
    unit.fiber_index = head.fiber_index;
    unit.matrix1 = head.fiber_matrix;
    unit.matrix2 = head.matrix;
    unit.slices = head.slices;
#else
    unit.matrix = head.matrix;
    unit.matrix_rows = head.matrix_rows;
#endif
}

void tick(element &unit)
{
    unit.clock = 1;
    unit.eval();
    unit.clock = 0;
}

/* Cycles of a run, and beats that the memory moved. */
struct counts {
    unsigned long long cycles, beats;
};

/* Runs a case. */
counts simulate(const header &head, std::vector<uint32_t> &memory, uint32_t stall)
{
    static element unit;
    std::deque<answer> answers;
    uint32_t width = head.beat_words;
    uint64_t now = 0, beats = 0;

    connect(unit, head);
    unit.reset = 1;
    unit.ready = 0;
    unit.answer = 0;
    unit.clock = 0;
    for (int i = 0; i < 64; i++) {
        unit.eval();
        tick(unit);
    }
    unit.reset = 0;
    for (; now < head.limit; now++) {
        unit.ready = !happens(stall);
        unit.answer = !answers.empty() && answers.front().due <= now && !happens(stall);
        if (unit.answer) {
            unit.answer_source = answers.front().source;
            for (uint32_t i = 0; i < width; i++) {
                unit.answer_data[i] = memory.at((uint64_t)answers.front().address * width + i);
            }
            answers.pop_front();
        }
        unit.eval();
        if (unit.done) {
            break;
        }
        if (unit.request && unit.ready) {
            beats++;
            if (unit.write) {
                for (uint32_t i = 0; i < width; i++) {
                    memory.at((uint64_t)unit.address * width + i) = unit.write_data[i];
                }
            } else {
                answers.push_back({now + head.memory_latency - 1, unit.source, unit.address});
            }
        }
        tick(unit);
    }
    return {now, beats};
}

bool is_nan(uint32_t bits)
{
    return (bits & 0x7fffffff) > 0x7f800000;
}

/* Runs the case in a file; returns false if it cannot be read. */
bool run_case(const char *path, uint32_t stall)
{
    FILE *file = fopen(path, "rb");
    header head;
    bool complete = file && fread(&head, sizeof head, 1, file) == 1;
    if (complete) {
        std::vector<uint32_t> memory(head.memory_words), expected(head.output_words);
        complete = fread(memory.data(), 4, memory.size(), file) == memory.size() &&
                   fread(expected.data(), 4, expected.size(), file) == expected.size();
        memory.resize(memory.size() + expected.size(), 0xa5a5a5a5);
        counts found = simulate(head, memory, stall);
        uint32_t wrong = 0;
        for (size_t i = 0; i < expected.size(); i++) {
            uint32_t actual = memory.at((uint64_t)head.output * head.beat_words + i);
            wrong += actual != expected[i] && !(is_nan(actual) && is_nan(expected[i]));
        }
        printf("%llu %llu %u\n", found.cycles, found.beats, wrong);
    }
    if (file) {
        fclose(file);
    }
    return complete;
}

} // namespace

int main(int argc, char **argv)
{
    for (int i = 2; i < argc; i++) {
        if (!run_case(argv[i], (uint32_t)atoi(argv[1]))) {
            return 1;
        }
    }
    return 0;
}
