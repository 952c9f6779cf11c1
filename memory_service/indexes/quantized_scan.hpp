// Finds the rows of a matrix with the largest inner products with a query: exact results by way of 8-bit
// codes.
//
// Each unit vector has a code of one byte per value, with a known error. So codes give bounds for an inner
// product, and only rows whose upper bound reaches the k-th best lower bound are compared in floats: a few
// dozen of ten thousand. Codes are a quarter of the memory to read, and processors have instructions for
// them.
//
// Codes are in blocks of 32 rows: the first four values of each row, then the next four of each, and so on.
// One instruction multiplies four values of 16 rows and adds the products to 16 sums.
//
// This is the vector-approximation file of Weber, Schek and Blott, "A Quantitative Analysis and Performance
// Study for Similarity-Search Methods in High-Dimensional Spaces" (VLDB 1998), for inner products, with a
// scale for each vector; the bounds follow from the Cauchy-Schwarz inequality.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "inner_product.hpp"

#ifdef INNER_PRODUCT_X86
#include <immintrin.h>
#endif

namespace quantized_scan {

constexpr int kRows = 32;
constexpr int kChunk = 4;
constexpr int kChunkBytes = kRows * kChunk;
constexpr int kTogether = 4;
constexpr int kZero = 128;
constexpr float kSteps = 127.0f;
// More than the rounding error of float sums.
constexpr float kRounding = 2e-5f;
constexpr int kLanes = 16;
// Up to this many rows are all compared in floats.
constexpr int kFewRows = 256;

inline int chunks_of(int dimension) { return (dimension + kChunk - 1) / kChunk; }

// --- codes ------------------------------------------------------------------------------------

struct Code {
    float scale;
    // The length of the difference between the vector and its code's value.
    float error;
};

// Calls put(i, step) for each value of a vector, with steps from -127 to 127.
template <typename Put>
inline Code encode(const float* vector, int dimension, Put put) {
    // In lanes, which a compiler can compute in parallel.
    float most[kLanes] = {}, square[kLanes] = {};
    for (int i = 0; i < dimension; ++i) {
        const float size = std::fabs(vector[i]);
        most[i % kLanes] = size > most[i % kLanes] ? size : most[i % kLanes];
    }
    const float largest = *std::max_element(most, most + kLanes);
    const float scale = largest / kSteps;
    // The inverse of the tiniest values would be infinite.
    const float inverse = scale > std::numeric_limits<float>::min() ? 1 / scale : 0;
    for (int i = 0; i < dimension; ++i) {
        const float steps = vector[i] * inverse;
        const int step = static_cast<int>(steps + (steps < 0 ? -0.5f : 0.5f));
        const float off = vector[i] - scale * static_cast<float>(step);
        square[i % kLanes] += off * off;
        put(i, step);
    }
    float total = 0;
    for (float part : square) total += part;
    return {scale, std::sqrt(total)};
}

struct Block {
    const std::uint8_t* codes;
    const float* scales;
    const float* errors;
    int chunks;
};

// The codes of rows that are appended one by one.
class Codes {
  public:
    explicit Codes(int dimension) : dimension_(dimension) {}

    void append(const float* vector) {
        const int row = static_cast<int>(count_ % kRows);
        if (row == 0) {
            bytes_.resize(bytes_.size() + block_bytes(), kZero);
            scales_.resize(scales_.size() + kRows, 0);
            errors_.resize(errors_.size() + kRows, 0);
        }
        std::uint8_t* block = bytes_.data() + (count_ / kRows) * block_bytes();
        const Code code = encode(vector, dimension_, [=](int i, int step) {
            block[(i / kChunk) * kChunkBytes + row * kChunk + i % kChunk] = static_cast<std::uint8_t>(step + kZero);
        });
        scales_[count_] = code.scale;
        errors_[count_] = code.error;
        ++count_;
    }

    std::int64_t count() const { return count_; }
    std::int64_t bytes() const { return bytes_.capacity() + 8 * scales_.capacity(); }
    int dimension() const { return dimension_; }
    std::int64_t block_bytes() const { return static_cast<std::int64_t>(chunks_of(dimension_)) * kChunkBytes; }
    Block block(std::int64_t first) const {
        const std::uint8_t* codes = bytes_.data() + (first / kRows) * block_bytes();
        return {codes, scales_.data() + first, errors_.data() + first, chunks_of(dimension_)};
    }

  private:
    int dimension_;
    std::int64_t count_ = 0;
    std::vector<std::uint8_t> bytes_;
    std::vector<float> scales_, errors_;
};

// The code of a query in the form of each kernel: four bytes per chunk, or its even and odd bytes in 16 bits
// each.
struct Query {
    Query(const float* vector, int dimension) : four(chunks_of(dimension)), even(four), odd(four) {
        auto* bytes = reinterpret_cast<std::int8_t*>(four.data());
        int sum = 0;
        code = encode(vector, dimension, [&](int i, int step) {
            bytes[i] = static_cast<std::int8_t>(step);
            sum += step;
        });
        for (std::size_t c = 0; c < four.size(); ++c) {
            const std::int8_t* part = bytes + c * kChunk;
            const std::int16_t evens[] = {part[0], part[2]}, odds[] = {part[1], part[3]};
            std::memcpy(&even[c], evens, sizeof evens);
            std::memcpy(&odd[c], odds, sizeof odds);
        }
        start = -kZero * sum;
        widening = 1 + code.error;
        slack = code.error + kRounding;
    }

    std::vector<std::int32_t> four, even, odd;
    Code code;
    // Removes the zero of the rows' codes from a sum.
    std::int32_t start;
    // An inner product is off by at most the error of the row times `widening`, plus `slack`.
    float widening, slack;
};

// --- kernels ----------------------------------------------------------------------------------

using Bounds = float[kRows];
// Computes the upper bounds of the rows of a block for up to kTogether queries, and for each query the bits
// of the rows whose bound reaches `least`.
using Bound = void (*)(
    const Block& block, const Query* queries, int count, const float* least, Bounds* upper, std::uint32_t* reached);

inline void bound_portably(
    const Block& block, const Query* queries, int count, const float* least, Bounds* upper, std::uint32_t* reached) {
    for (int q = 0; q < count; ++q) {
        const Query& query = queries[q];
        std::int32_t sums[kRows];
        std::fill(sums, sums + kRows, query.start);
        const auto* steps = reinterpret_cast<const std::int8_t*>(query.four.data());
        for (int c = 0; c < block.chunks; ++c, steps += kChunk) {
            const std::uint8_t* codes = block.codes + c * kChunkBytes;
            for (int row = 0; row < kRows; ++row, codes += kChunk)
                sums[row] += codes[0] * steps[0] + codes[1] * steps[1] + codes[2] * steps[2] + codes[3] * steps[3];
        }
        reached[q] = 0;
        for (int row = 0; row < kRows; ++row) {
            const float product = static_cast<float>(sums[row]) * (block.scales[row] * query.code.scale);
            upper[q][row] = product + (block.errors[row] * query.widening + query.slack);
            reached[q] |= static_cast<std::uint32_t>(upper[q][row] >= least[q]) << row;
        }
    }
}

#ifdef INNER_PRODUCT_X86

template <int N>
__attribute__((target("avx512f,avx512vnni"))) inline void bound_n_with_avx512(
    const Block& block, const Query* queries, const float* least, Bounds* upper, std::uint32_t* reached) {
    // Two sums each, or every addition would wait for the previous one.
    __m512i sums[2][N], others[2][N];
    for (int q = 0; q < N; ++q) {
        sums[0][q] = sums[1][q] = _mm512_set1_epi32(queries[q].start);
        others[0][q] = others[1][q] = _mm512_setzero_si512();
    }
    const auto add = [&](int c, __m512i (&to)[2][N]) __attribute__((always_inline, target("avx512f,avx512vnni"))) {
        const std::uint8_t* codes = block.codes + c * kChunkBytes;
        const __m512i low = _mm512_loadu_si512(codes), high = _mm512_loadu_si512(codes + kChunkBytes / 2);
        for (int q = 0; q < N; ++q) {
            const __m512i four = _mm512_set1_epi32(queries[q].four[c]);
            to[0][q] = _mm512_dpbusd_epi32(to[0][q], low, four);
            to[1][q] = _mm512_dpbusd_epi32(to[1][q], high, four);
        }
    };
    int c = 0;
    for (; c + 1 < block.chunks; c += 2) {
        add(c, sums);
        add(c + 1, others);
    }
    if (c < block.chunks) add(c, sums);
    for (int q = 0; q < N; ++q)
        for (int half = 0; half < 2; ++half) sums[half][q] = _mm512_add_epi32(sums[half][q], others[half][q]);
    for (int q = 0; q < N; ++q) {
        const __m512 scale = _mm512_set1_ps(queries[q].code.scale);
        const __m512 widening = _mm512_set1_ps(queries[q].widening), slack = _mm512_set1_ps(queries[q].slack);
        reached[q] = 0;
        for (int half = 0; half < 2; ++half) {
            const __m512 scales = _mm512_loadu_ps(block.scales + 16 * half);
            const __m512 errors = _mm512_loadu_ps(block.errors + 16 * half);
            const __m512 product = _mm512_mul_ps(_mm512_cvtepi32_ps(sums[half][q]), _mm512_mul_ps(scales, scale));
            const __m512 bounds = _mm512_add_ps(product, _mm512_fmadd_ps(errors, widening, slack));
            _mm512_storeu_ps(upper[q] + 16 * half, bounds);
            const std::uint32_t bits = _mm512_cmp_ps_mask(bounds, _mm512_set1_ps(least[q]), _CMP_GE_OQ);
            reached[q] |= bits << (16 * half);
        }
    }
}

inline void bound_with_avx512(
    const Block& block, const Query* queries, int count, const float* least, Bounds* upper, std::uint32_t* reached) {
    switch (count) {
        case 1: return bound_n_with_avx512<1>(block, queries, least, upper, reached);
        case 2: return bound_n_with_avx512<2>(block, queries, least, upper, reached);
        case 3: return bound_n_with_avx512<3>(block, queries, least, upper, reached);
        default: return bound_n_with_avx512<kTogether>(block, queries, least, upper, reached);
    }
}

template <int N>
__attribute__((target("avx2"))) inline void bound_n_with_avx2(
    const Block& block, const Query* queries, const float* least, Bounds* upper, std::uint32_t* reached) {
    const __m256i lower_byte = _mm256_set1_epi16(0xff);
    std::fill(reached, reached + N, 0);
    for (int first = 0; first < kRows; first += 8) {
        __m256i sums[N];
        for (int q = 0; q < N; ++q) sums[q] = _mm256_set1_epi32(queries[q].start);
        for (int c = 0; c < block.chunks; ++c) {
            const std::uint8_t* at = block.codes + c * kChunkBytes + first * kChunk;
            const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
            // In 16 bits: the instruction for bytes saturates when the sum of two products exceeds 32,767.
            const __m256i even = _mm256_and_si256(codes, lower_byte), odd = _mm256_srli_epi16(codes, 8);
            for (int q = 0; q < N; ++q) {
                const __m256i evens = _mm256_madd_epi16(even, _mm256_set1_epi32(queries[q].even[c]));
                const __m256i odds = _mm256_madd_epi16(odd, _mm256_set1_epi32(queries[q].odd[c]));
                sums[q] = _mm256_add_epi32(sums[q], _mm256_add_epi32(evens, odds));
            }
        }
        for (int q = 0; q < N; ++q) {
            const __m256 scales = _mm256_mul_ps(
                _mm256_loadu_ps(block.scales + first), _mm256_set1_ps(queries[q].code.scale));
            const __m256 errors = _mm256_mul_ps(
                _mm256_loadu_ps(block.errors + first), _mm256_set1_ps(queries[q].widening));
            const __m256 product = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[q]), scales);
            const __m256 bounds = _mm256_add_ps(product, _mm256_add_ps(errors, _mm256_set1_ps(queries[q].slack)));
            _mm256_storeu_ps(upper[q] + first, bounds);
            const __m256 reach = _mm256_cmp_ps(bounds, _mm256_set1_ps(least[q]), _CMP_GE_OQ);
            reached[q] |= static_cast<std::uint32_t>(_mm256_movemask_ps(reach)) << first;
        }
    }
}

inline void bound_with_avx2(
    const Block& block, const Query* queries, int count, const float* least, Bounds* upper, std::uint32_t* reached) {
    switch (count) {
        case 1: return bound_n_with_avx2<1>(block, queries, least, upper, reached);
        case 2: return bound_n_with_avx2<2>(block, queries, least, upper, reached);
        case 3: return bound_n_with_avx2<3>(block, queries, least, upper, reached);
        default: return bound_n_with_avx2<kTogether>(block, queries, least, upper, reached);
    }
}

#endif

struct Kernel {
    const char* name;
    Bound bound;
    inner_product::Product product;
};

// The kernels that this processor supports, the fastest first.
inline std::vector<Kernel> kernels() {
    std::vector<Kernel> found;
#ifdef INNER_PRODUCT_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni"))
        found.push_back({"avx512", bound_with_avx512, inner_product::with_avx512});
    if (__builtin_cpu_supports("avx2")) found.push_back({"avx2", bound_with_avx2, inner_product::with_avx2});
#endif
    found.push_back({"portable", bound_portably, inner_product::portably});
    return found;
}

// --- searching --------------------------------------------------------------------------------

// A row and its inner product with a query; for a candidate, the upper bound of that.
using Found = std::pair<float, std::int64_t>;

// The k best lower bounds for a query, and the rows whose upper bounds reached the least of them so far.
class Candidates {
  public:
    Candidates(std::size_t k, float over) : k_(k), over_(over), least_(over) {
        reached_.reserve(kFewRows);
        if (k <= kFewRows) lowers_.reserve(k);
    }

    float least() const { return least_; }

    void add(std::int64_t row, float upper, float lower) {
        reached_.push_back({upper, row});
        if (lower <= least_) return;
        if (lowers_.size() == k_) {
            std::pop_heap(lowers_.begin(), lowers_.end(), std::greater<>());
            lowers_.back() = lower;
        } else {
            lowers_.push_back(lower);
        }
        std::push_heap(lowers_.begin(), lowers_.end(), std::greater<>());
        if (lowers_.size() == k_) least_ = lowers_.front();
    }

    void add(std::int64_t row) { reached_.push_back({std::numeric_limits<float>::infinity(), row}); }

    // The k best rows, compared in floats: the best first, of equal ones the first.
    std::vector<Found> best(const float* matrix, const float* query, int dimension, inner_product::Product product_of) {
        std::size_t kept = 0;
        for (const Found& each : reached_) {
            if (each.first < least_) continue;
            const float product = product_of(matrix + each.second * dimension, query, dimension);
            if (product > over_) reached_[kept++] = {-product, each.second};
        }
        reached_.resize(kept);
        const std::size_t count = std::min(k_, kept);
        std::partial_sort(reached_.begin(), reached_.begin() + count, reached_.end());
        reached_.resize(count);
        for (Found& each : reached_) each.first = -each.first;
        return std::move(reached_);
    }

  private:
    std::size_t k_;
    float over_, least_;
    std::vector<float> lowers_;
    std::vector<Found> reached_;
};

// Adds to the candidates of each query the live rows of a block that reach its bound.
inline void look_at(
    const Block& block, std::int64_t first, std::uint32_t live, const std::vector<Query>& queries, const Kernel& kernel,
    std::vector<Candidates>& candidates) {
    const int count = static_cast<int>(queries.size());
    for (int q = 0; q < count; q += kTogether) {
        const int together = std::min(kTogether, count - q);
        float least[kTogether];
        Bounds upper[kTogether];
        std::uint32_t reached[kTogether];
        for (int i = 0; i < together; ++i) least[i] = candidates[q + i].least();
        kernel.bound(block, &queries[q], together, least, upper, reached);
        for (int i = 0; i < together; ++i) {
            const Query& query = queries[q + i];
            for (std::uint32_t bits = reached[i] & live; bits; bits &= bits - 1) {
                const int row = __builtin_ctz(bits);
                const float bound = upper[i][row], off = block.errors[row] * query.widening + query.slack;
                if (bound >= candidates[q + i].least()) candidates[q + i].add(first + row, bound, bound - 2 * off);
            }
        }
    }
}

inline std::uint32_t live_bits(const std::uint8_t* live, std::int64_t count) {
    std::uint32_t bits = 0;
    for (int row = 0; row < kRows && row < count; ++row) bits |= static_cast<std::uint32_t>(live[row] != 0) << row;
    return bits;
}

// Returns for each query the k live rows, or fewer, with the largest inner products above `over`. k is
// positive.
inline std::vector<std::vector<Found>> nearest(
    const Codes& codes, const float* matrix, const std::uint8_t* live, std::int64_t rows, const float* queries,
    int count, std::size_t k, const float* over, const Kernel& kernel) {
    const int dimension = codes.dimension();
    std::vector<Candidates> candidates;
    for (int q = 0; q < count; ++q) candidates.emplace_back(k, over[q]);
    if (rows <= kFewRows) {
        for (std::int64_t row = 0; row < rows; ++row)
            if (live[row]) for (Candidates& each : candidates) each.add(row);
    } else {
        std::vector<Query> coded;
        for (int q = 0; q < count; ++q) coded.emplace_back(queries + std::int64_t{q} * dimension, dimension);
        for (std::int64_t first = 0; first < rows; first += kRows)
            look_at(codes.block(first), first, live_bits(live + first, rows - first), coded, kernel, candidates);
    }
    std::vector<std::vector<Found>> best;
    for (int q = 0; q < count; ++q)
        best.push_back(candidates[q].best(matrix, queries + std::int64_t{q} * dimension, dimension, kernel.product));
    return best;
}

}  // namespace quantized_scan
