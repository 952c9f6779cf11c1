// Asks for a vector that is needed soon.

#pragma once

#include <cstddef>

inline void prefetch_vector(const float* vector, std::ptrdiff_t length) {
    constexpr std::ptrdiff_t kFloatsPerLine = 16;
    for (std::ptrdiff_t i = 0; i < length; i += kFloatsPerLine) __builtin_prefetch(vector + i);
}
