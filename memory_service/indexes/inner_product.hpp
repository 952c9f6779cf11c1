// The inner product of two vectors of floats, with what the processor has.

#pragma once

#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__)
#define INNER_PRODUCT_X86
#endif

namespace inner_product {

using Product = float (*)(const float* one, const float* other, int length);

// In lanes: a compiler may not change the order of a sum of floats, but these it can take at once.
constexpr int kLanes = 32;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

__attribute__((always_inline)) inline float in_lanes(const float* one, const float* other, int length) {
    Lanes sums = {};
    int i = 0;
    for (; i + kLanes <= length; i += kLanes) {
        Lanes left, right;
        std::memcpy(&left, one + i, sizeof left);
        std::memcpy(&right, other + i, sizeof right);
        sums += left * right;
    }
    float lanes[kLanes];
    std::memcpy(lanes, &sums, sizeof lanes);
    for (int half = kLanes / 2; half; half /= 2)
        for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
    for (; i < length; ++i) lanes[0] += one[i] * other[i];
    return lanes[0];
}

inline float portably(const float* one, const float* other, int length) { return in_lanes(one, other, length); }

#ifdef INNER_PRODUCT_X86

__attribute__((target("avx512f"))) inline float with_avx512(const float* one, const float* other, int length) {
    return in_lanes(one, other, length);
}

__attribute__((target("avx2"))) inline float with_avx2(const float* one, const float* other, int length) {
    return in_lanes(one, other, length);
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
