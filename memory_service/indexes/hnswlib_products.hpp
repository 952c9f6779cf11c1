// Compiled into hnswlib, before its code (`-include`): a build for any processor still uses the instructions
// of the present one. By itself hnswlib uses only those it was compiled for.

#pragma once

#include "hnswlib.h"

#include "inner_product.hpp"

#ifdef USE_SSE

namespace hnswlib {

static const inner_product::Product product_of = inner_product::fastest();

static float fastest_product(const void* one, const void* other, const void* length) {
    const auto count = static_cast<int>(*static_cast<const std::size_t*>(length));
    return product_of(static_cast<const float*>(one), static_cast<const float*>(other), count);
}

static float fastest_distance(const void* one, const void* other, const void* length) {
    return 1.0f - fastest_product(one, other, length);
}

// For dimensions that are a multiple of 16, and for the largest such part of others above 16, unless 4
// divides them.
static const bool replaced = [] {
    InnerProductSIMD16Ext = fastest_product;
    InnerProductDistanceSIMD16Ext = fastest_distance;
    return true;
}();

}  // namespace hnswlib

#endif
