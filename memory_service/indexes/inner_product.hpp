// The inner product of two float vectors, with the best instructions of the processor.

#pragma once

#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define INNER_PRODUCT_X86
#endif

namespace inner_product {

using Product = float (*)(const float* one, const float* other, int length);

// In lanes: a compiler must not reorder a sum of floats, but can compute these in parallel.
constexpr int kLanes = 32;
using Of4 = float __attribute__((vector_size(4 * sizeof(float))));
using Of8 = float __attribute__((vector_size(8 * sizeof(float))));
using Of16 = float __attribute__((vector_size(16 * sizeof(float))));

__attribute__((always_inline)) inline float sum_of(const Of4& lanes) {
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

__attribute__((always_inline)) inline float sum_of(const Of8& lanes) {
    Of4 halves[2];
    std::memcpy(halves, &lanes, sizeof halves);
    return sum_of(halves[0] + halves[1]);
}

__attribute__((always_inline)) inline float sum_of(const Of16& lanes) {
    Of8 halves[2];
    std::memcpy(halves, &lanes, sizeof halves);
    return sum_of(halves[0] + halves[1]);
}

// `Register` is what the processor takes at once: sums of a larger type would go through memory at every
// step.
template <typename Register>
__attribute__((always_inline)) inline float in_lanes(const float* one, const float* other, int length) {
    constexpr int kWidth = sizeof(Register) / sizeof(float), kRegisters = kLanes / kWidth;
    Register sums[kRegisters] = {};
    int i = 0;
    for (; i + kLanes <= length; i += kLanes)
        for (int r = 0; r < kRegisters; ++r) {
            Register left, right;
            std::memcpy(&left, one + i + r * kWidth, sizeof left);
            std::memcpy(&right, other + i + r * kWidth, sizeof right);
            sums[r] += left * right;
        }
    for (int half = kRegisters / 2; half; half /= 2)
        for (int r = 0; r < half; ++r) sums[r] += sums[r + half];
    float total = sum_of(sums[0]);
    for (; i < length; ++i) total += one[i] * other[i];
    return total;
}

inline float portably(const float* one, const float* other, int length) { return in_lanes<Of4>(one, other, length); }

#ifdef INNER_PRODUCT_X86

__attribute__((target("avx512f"))) inline float with_avx512(const float* one, const float* other, int length) {
    return in_lanes<Of16>(one, other, length);
}

__attribute__((target("avx2"))) inline float with_avx2(const float* one, const float* other, int length) {
    return in_lanes<Of8>(one, other, length);
}

#endif

inline Product fastest() {
#ifdef INNER_PRODUCT_X86
    if (__builtin_cpu_supports("avx512f")) return with_avx512;
    if (__builtin_cpu_supports("avx2")) return with_avx2;
#endif
    return portably;
}

}  // namespace inner_product
