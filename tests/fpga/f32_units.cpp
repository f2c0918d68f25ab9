/* Compares the adder and the multiplier of fpga/rtl with the f32 arithmetic of this processor.
 *
 * f32_units LATENCY COUNT SEED: all pairs of special operands, then COUNT random pairs. Prints the
 * number of pairs, or the first differences; the exit status is 0 if there is none. Every NaN must
 * be 7fc00000. */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>

#include "Vf32_units.h"

namespace
{

struct operands {
    uint32_t a, b;
};

uint64_t state;

/* Returns 64 random bits (splitmix64). */
uint64_t random_bits()
{
    uint64_t mixed = state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

float number_of(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

uint32_t bits_of(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return number != number ? 0x7fc00000 : bits;
}

/* Returns the ends of every range of exponents, and numbers next to ties, with both signs. */
std::vector<uint32_t> special_operands()
{
    std::vector<uint32_t> found;
    for (uint32_t exponent :
         {0, 1, 2, 23, 24, 63, 64, 103, 104, 126, 127, 128, 150, 151, 190, 191, 253, 254, 255}) {
        for (uint32_t fraction :
             {0x0, 0x1, 0x2, 0x3, 0x3fffff, 0x400000, 0x400001, 0x7ffffe, 0x7fffff}) {
            found.push_back(exponent << 23 | fraction);
            found.push_back(1u << 31 | exponent << 23 | fraction);
        }
    }
    return found;
}

/* Returns a random pair: any bits, close exponents (cancellation), exponents whose product is near
 * the subnormal numbers or near overflow, or few fraction bits (ties). */
operands random_pair()
{
    uint64_t bits = random_bits();
    operands pair = {(uint32_t)bits, (uint32_t)(bits >> 32)};
    uint64_t more = random_bits();
    uint32_t exponent = pair.a >> 23 & 0xff, other = exponent;
    switch (more & 3) {
    case 0:
        return pair;
    case 1:
        other = exponent + (more >> 8) % 53 - 26;
        break;
    case 2:
        other = (more & 4 ? 127u : 381u) + (more >> 8) % 53 - 26 - exponent;
        break;
    default:
        pair.a &= ~0u << (more >> 8) % 24;
        pair.b &= ~0u << (more >> 16) % 24;
        other = exponent + (more >> 24) % 53 - 26;
    }
    pair.b = (pair.b & 0x807fffff) | (other & 0xff) << 23;
    return pair;
}

/* The units under test, the pairs inside their pipelines, and what was found. */
struct bench {
    Vf32_units units;
    std::deque<operands> inside;
    unsigned latency;
    unsigned long checked = 0, wrong = 0;

    void compare(const char *name, char sign, operands pair, uint32_t expected, uint32_t actual)
    {
        if (expected != actual && wrong++ < 10) {
            printf("%s: %08x %c %08x = %08x, expected %08x\n", name, pair.a, sign, pair.b, actual,
                   expected);
        }
    }

    /* Feeds a pair and checks what leaves the pipelines. */
    void feed(operands pair)
    {
        units.clock = 0;
        units.a = pair.a;
        units.b = pair.b;
        units.eval();
        inside.push_back(pair);
        if (inside.size() > latency) {
            operands first = inside.front();
            inside.pop_front();
            float a = number_of(first.a), b = number_of(first.b);
            compare("f32_add", '+', first, bits_of(a + b), units.sum);
            compare("f32_multiply", '*', first, bits_of(a * b), units.product);
            checked++;
        }
        units.clock = 1;
        units.eval();
    }
};

} // namespace

int main(int argc, char **argv)
{
    if (argc != 4) {
        return 2;
    }
    static bench bench;
    bench.latency = (unsigned)atoi(argv[1]);
    unsigned long count = strtoul(argv[2], nullptr, 10);
    state = strtoul(argv[3], nullptr, 10);
    std::vector<uint32_t> special = special_operands();
    for (uint32_t a : special) {
        for (uint32_t b : special) {
            bench.feed({a, b});
        }
    }
    for (unsigned long i = 0; i < count; i++) {
        bench.feed(random_pair());
    }
    for (unsigned i = 0; i < bench.latency; i++) {
        bench.feed({0, 0});
    }
    printf("%lu pairs, %lu wrong\n", bench.checked, bench.wrong);
    return bench.wrong != 0;
}
