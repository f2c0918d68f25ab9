/* Macros of the instruction set for which a file is compiled. SLC_SET selects the instruction set,
 * and compiler flags enable it. Files that include this header are compiled once per instruction
 * set; their code may run only if instruction_set.c has found that the processor supports the
 * instruction set. */
#ifndef SLC_CPU_SET_NAMES_H
#define SLC_CPU_SET_NAMES_H

#define SET_PORTABLE 1
#define SET_AVX2     2
#define SET_AVX512   3
#define SET_NEON     4

#if SLC_SET == SET_AVX512
#define SET_NAME             avx512
#define SET_VECTOR_BYTES     64
#define SET_VECTOR_REGISTERS 32
#elif SLC_SET == SET_AVX2
#define SET_NAME             avx2
#define SET_VECTOR_BYTES     32
#define SET_VECTOR_REGISTERS 16
#elif SLC_SET == SET_NEON
#define SET_NAME             neon
#define SET_VECTOR_BYTES     16
#define SET_VECTOR_REGISTERS 32
#else
#define SET_NAME             portable
#define SET_VECTOR_BYTES     16
#define SET_VECTOR_REGISTERS 16
#endif

/* Unrolls a loop whose count is a constant less than the number of registers. */
#if defined(__GNUC__) && !defined(__clang__)
#define UNROLL _Pragma("GCC unroll 16")
#else
#define UNROLL _Pragma("unroll")
#endif

/* 1 if a sanitizer instruments the kernels, which then compile slowly. In this case, a loop that is
 * otherwise compiled twice, with and without prefetching or merging, is compiled once and decides
 * at run time. */
#ifndef SLC_FEW_FORMS
#define SLC_FEW_FORMS 0
#endif

/* Defines a kernel of a table. Its loop is compiled separately for each class of the number of
 * factors, so that this number is a constant. */
#define KERNEL(name, type, ...)                                                                    \
    static void name(const struct type *span, uint64_t column)                                     \
    {                                                                                              \
        (void)column; /* the column offset of a row with one column is 0 */                        \
        __VA_ARGS__;                                                                               \
    }

#define SET_PASTE(prefix, name)  prefix##name
#define SET_EXPAND(prefix, name) SET_PASTE(prefix, name)

#endif
