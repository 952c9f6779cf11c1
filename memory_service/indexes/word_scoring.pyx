# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# distutils: language = c++
"""BM25 over postings, in compiled code: see `lexical.py` for the formula and the reasons.

A query touches some thousand postings in small pieces, for which numpy has too much overhead.
"""

import numpy as np

from libc.math cimport log
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libcpp.algorithm cimport lower_bound, nth_element, sort
from libcpp.pair cimport pair
from libcpp.vector cimport vector

# Limit for lookups of terms in segments before the cost of a search is known. Doubled, they take at most 10 ms more.
cdef int64_t _LOOKS_MAX = 1 << 18

ctypedef pair[double, int32_t] Ranked  # negated score and row: the least is the best, the newer of equal ones

ctypedef pair[uint32_t, int32_t] Wanted  # a query's term, and its index


cdef struct Span:
    const int32_t* docs  # ascending
    const uint16_t* counts
    int64_t length
    int32_t term


cdef struct Postings:
    const uint32_t* terms
    const int64_t* starts
    const int32_t* docs
    const uint16_t* counts
    int64_t term_count


cdef class Segment:
    """The postings of one segment: those of terms[i], ascending by document, are at starts[i]:starts[i + 1].

    There is at least one.
    """

    cdef const uint32_t[::1] terms
    cdef const int64_t[::1] starts
    cdef const int32_t[::1] docs
    cdef const uint16_t[::1] counts

    def __init__(self, terms, starts, docs, counts):
        self.terms, self.starts, self.docs, self.counts = terms, starts, docs, counts

    cdef Postings postings(self):
        return Postings(&self.terms[0], &self.starts[0], &self.docs[0], &self.counts[0], self.terms.shape[0])


cdef int64_t _find(const Postings* segment, uint32_t term, int64_t begin, Span* span) noexcept nogil:
    """Return the index of a term, or where it would be, from `begin` on; set the postings of an existing one.

    In doubling steps: consecutive terms of a sorted list are near each other.
    """
    cdef int64_t count = segment.term_count, low = begin, step = 1, high, middle
    while low + step <= count and segment.terms[low + step - 1] < term:
        low += step
        step *= 2
    high = min(low + step - 1, count)
    while low < high:
        middle = (low + high) >> 1
        if segment.terms[middle] < term:
            low = middle + 1
        else:
            high = middle
    span.length = 0
    if low < count and segment.terms[low] == term:
        span.docs = &segment.docs[segment.starts[low]]
        span.counts = &segment.counts[segment.starts[low]]
        span.length = segment.starts[low + 1] - segment.starts[low]
    return low


cdef class Scratch:
    """Buffers for the sums of a query, reused by the next; all zero in between."""

    cdef vector[double] sums
    cdef vector[int32_t] places
    # The documents or rows with a sum: the first `touched_count`. Not cleared.
    cdef vector[int32_t] touched
    cdef int64_t touched_count

    @property
    def nbytes(self):
        return 8 * self.sums.capacity() + 4 * self.places.capacity() + 4 * self.touched.capacity()

    cdef void make_room(self, int64_t sums, int64_t additions) noexcept nogil:
        """Make room for this many sums and additions."""
        # One more than needed: each entry is written before it is known whether it counts.
        cdef int64_t touched = min(sums, additions) + 1
        if <int64_t>self.sums.size() < sums:
            self.sums.resize(2 * sums, 0.0)
        if <int64_t>self.touched.size() < touched:
            self.touched.resize(2 * touched)

    cdef inline void add(self, int32_t at, double score) noexcept nogil:
        # Written always, and counted if new, because a branch would be unpredictable.
        self.touched[self.touched_count] = at
        self.touched_count += self.sums[at] == 0
        self.sums[at] += score

    cdef void take_out(self, vector[Ranked]& ranked) noexcept nogil:
        """Move all sums to `ranked`, and leave zeros."""
        cdef int64_t i
        cdef int32_t at
        ranked.resize(self.touched_count)
        for i in range(self.touched_count):
            at = self.touched[i]
            ranked[i].first, ranked[i].second = -self.sums[at], -at
            self.sums[at] = 0
        self.touched_count = 0


cdef class Tables:
    """The tables to look up words in, until the index changes: postings, documents, rows and their
    neighbours.
    """

    cdef list segments
    cdef vector[Postings] postings
    cdef Scratch scratch
    cdef const uint32_t[::1] open_terms
    cdef const int32_t[::1] open_docs
    cdef const uint16_t[::1] open_counts
    cdef const int32_t[::1] lengths, doc_row, row_doc, before, after
    cdef const uint8_t[::1] live
    cdef const double[::1] earlier, later
    cdef int64_t live_count
    cdef double mean_length, mean_window, k1, b

    def __init__(self, list segments, tuple fresh, tuple documents, tuple rows, tuple weights, Scratch scratch, double k1, double b):
        cdef int64_t live_length
        self.segments, self.scratch, self.k1, self.b = segments, scratch, k1, b
        cdef Segment segment
        for segment in segments:
            self.postings.push_back(segment.postings())
        self.open_terms, self.open_docs, self.open_counts = fresh
        self.lengths, self.live, self.live_count, live_length = documents
        self.mean_length = max(live_length / <double>max(self.live_count, 1), 1e-9)
        self.doc_row, self.row_doc, self.before, self.after, self.mean_window = rows
        self.earlier, self.later = weights


cdef class Lookup:
    """The live documents with some terms, and those of speakers with some names; for one query."""

    cdef Tables tables
    cdef Scratch scratch
    cdef readonly int32_t term_count
    # Terms, followed by those of names, with the index of each.
    cdef vector[Wanted] ordered
    cdef bint looked_up
    cdef vector[Span] spans
    cdef vector[Span] named
    cdef vector[int64_t] doc_counts
    cdef vector[double] idf
    # What each term counts in the share of the query's words that a row has, all terms together 1.
    cdef vector[double] portions
    # Of this index, or of all that are searched together.
    cdef int64_t live_count
    cdef double mean_length, mean_window
    cdef vector[vector[int32_t]] open_docs
    cdef vector[vector[uint16_t]] open_counts

    def __init__(self, Tables tables, list terms, list names):
        self.tables, self.scratch = tables, tables.scratch
        self.live_count = tables.live_count
        self.mean_length, self.mean_window = tables.mean_length, tables.mean_window
        self.term_count = <int32_t>len(terms)
        cdef vector[uint32_t] wanted = terms
        cdef vector[uint32_t] more = names
        wanted.insert(wanted.end(), more.begin(), more.end())
        cdef size_t at
        for at in range(wanted.size()):
            self.ordered.push_back(Wanted(wanted[at], <int32_t>at))
        sort(self.ordered.begin(), self.ordered.end())

    cdef void _look_up(self) noexcept nogil:
        """Find the postings of the terms, once."""
        cdef Span span
        cdef size_t s, at
        cdef int64_t place
        if self.looked_up:
            return
        self.looked_up = True
        for s in range(self.tables.postings.size()):
            place = 0
            for at in range(self.ordered.size()):
                place = _find(&self.tables.postings[s], self.ordered[at].first, place, &span)
                if span.length:
                    self._take(span, self.ordered[at].second)
        self._find_fresh(self.ordered)

    cdef inline void _take(self, Span span, int32_t term) noexcept nogil:
        span.term = term
        if term < self.term_count:
            self.spans.push_back(span)
        else:
            self.named.push_back(span)

    cdef void _find_fresh(self, vector[Wanted]& ordered) noexcept nogil:
        """Find postings in the open segment, which is not sorted by term."""
        cdef const uint32_t[::1] terms = self.tables.open_terms
        cdef size_t at, place
        cdef int64_t i
        cdef Span span
        cdef vector[uint8_t] here
        # Few of them match the query: one look at a few bits excludes most.
        here.resize(4096)
        for at in range(ordered.size()):
            here[ordered[at].first & 4095] = 1
        self.open_docs.resize(ordered.size())
        self.open_counts.resize(ordered.size())
        for i in range(terms.shape[0]):
            if here[terms[i] & 4095]:
                place = lower_bound(ordered.begin(), ordered.end(), Wanted(terms[i], 0)) - ordered.begin()
                while place < ordered.size() and ordered[place].first == terms[i]:
                    at = ordered[place].second
                    self.open_docs[at].push_back(self.tables.open_docs[i])
                    self.open_counts[at].push_back(self.tables.open_counts[i])
                    place += 1
        for at in range(ordered.size()):
            if self.open_docs[at].size():
                span.docs, span.counts = self.open_docs[at].data(), self.open_counts[at].data()
                span.length = self.open_docs[at].size()
                self._take(span, <int32_t>at)

    def posting_count(self, bint all_allowed, tuple widths):
        """Return how many postings the first pass of a search reads, including those of dead documents.

        Excluding these would mean reading them all, which is part of the search itself.
        """
        cdef int64_t telling_docs = self._telling_docs(all_allowed, widths[2], widths[3])
        cdef int64_t telling = 0, common = 0
        cdef size_t s
        cdef vector[int64_t] lengths
        cdef int64_t looks = self.ordered.size() * self.tables.postings.size()
        # A text may have ten thousand words, and an index a hundred segments.
        if looks > _LOOKS_MAX:
            return looks
        self._look_up()
        lengths.resize(self.term_count)
        for s in range(self.spans.size()):
            lengths[self.spans[s].term] += self.spans[s].length
        for s in range(self.spans.size()):
            if lengths[self.spans[s].term] <= telling_docs:
                telling += self.spans[s].length
            else:
                common += self.spans[s].length
        return telling or common

    cdef int64_t _telling_docs(self, bint all_allowed, int64_t least, int64_t share) noexcept:
        # A few allowed rows may have common words only.
        return max(least, self.live_count // share) if all_allowed else self.live_count

    cdef bint _all_live(self) noexcept nogil:
        return self.tables.live_count == self.tables.lengths.shape[0]

    cdef void _count(self) noexcept nogil:
        """Count the live documents of each term."""
        cdef size_t s
        cdef int64_t i, alive
        cdef Span* span
        cdef bint all_live = self._all_live()
        self.doc_counts.assign(self.term_count, 0)
        for s in range(self.spans.size()):
            span = &self.spans[s]
            alive = span.length
            if not all_live:
                alive = 0
                for i in range(span.length):
                    alive += self.tables.live[span.docs[i]]
            self.doc_counts[span.term] += alive

    cdef void _weigh_terms(self) noexcept nogil:
        """Compute the idf of each term, and its portion of the query."""
        cdef int32_t term
        cdef int64_t docs
        cdef double whole = 0
        # A count in few documents says little about a word: it is weighed as if there were more.
        cdef int64_t many = max(self.live_count, _PORTION_DOCS_MIN)
        self.idf.resize(self.term_count)
        self.portions.resize(self.term_count)
        for term in range(self.term_count):
            docs = self.doc_counts[term]
            self.idf[term] = log(1 + (self.live_count - docs + 0.5) / (docs + 0.5))
            self.portions[term] = log(1 + (many - docs + 0.5) / (docs + 0.5))
            whole += self.portions[term]
        for term in range(self.term_count):
            self.portions[term] /= whole

    def use(self, Scratch scratch):
        """Use these buffers instead of those that other searches use in another thread."""
        self.scratch = scratch

    def search(self, const uint8_t[::1] allowed, const int32_t[::1] near, int64_t count, tuple widths):
        """Return rows, their scores, and the share of the query's words in each: the `count` best by words
        among those allowed, and all that are `near`.
        """
        cdef int64_t widest, enough, telling_min, telling_share
        widest, enough, telling_min, telling_share = widths
        cdef vector[int32_t] found
        cdef vector[Ranked] ranked
        cdef vector[double] scores, shares
        cdef bint all_allowed = allowed is None
        cdef int64_t telling_docs = self._telling_docs(all_allowed, telling_min, telling_share)
        with nogil:
            self._look_up()
            self._count()
            self._weigh_terms()
            self._score_alone(telling_docs)
            self.scratch.take_out(ranked)
            if all_allowed:
                _keep_best(ranked, widest)
            self._spread(self.tables, ranked)
            self.scratch.take_out(ranked)
            if not all_allowed:
                _keep_allowed(ranked, allowed)
            _keep_best(ranked, enough)
            _gather(ranked, near, found)
            self._score_windows(self.tables, found, scores, shares)
            _rank(scores, ranked)
            _keep_best(ranked, count)
        return _result(found, scores, shares, near, ranked)

    cdef void _score_alone(self, int64_t telling_docs) noexcept nogil:
        """Sum the score of each document's own words, by the most significant terms.

        Terms that many of many documents have are left out, unless there are no others: they cost the most,
        and their part of a score hardly ever decides which are among the best.
        """
        cdef size_t s
        cdef int64_t i, postings = 0
        cdef int32_t doc, term
        cdef double count, gain
        cdef double norm = self.tables.k1 * (1 - self.tables.b), per_word = self.tables.k1 * self.tables.b / self.mean_length
        cdef Span* span
        cdef bint any_telling = False
        cdef bint all_live = self._all_live()
        for term in range(self.term_count):
            if 0 < self.doc_counts[term] <= telling_docs:
                any_telling = True
        for s in range(self.spans.size()):
            postings += self.spans[s].length
        self.scratch.make_room(self.tables.lengths.shape[0], postings)
        for s in range(self.spans.size()):
            span = &self.spans[s]
            if any_telling and self.doc_counts[span.term] > telling_docs:
                continue
            gain = self.idf[span.term] * (self.tables.k1 + 1)
            for i in range(span.length):
                doc = span.docs[i]
                if all_live or self.tables.live[doc]:
                    count = span.counts[i]
                    self.scratch.add(doc, gain * count / (count + norm + per_word * self.tables.lengths[doc]))

    cdef void _spread(self, Tables tables, vector[Ranked]& ranked) noexcept nogil:
        """Sum for each row the scores of the documents in its window, by weight."""
        cdef size_t i
        cdef int32_t row
        cdef double score
        cdef int64_t width = 1 + tables.earlier.shape[0] + tables.later.shape[0]
        self.scratch.make_room(tables.row_doc.shape[0], <int64_t>ranked.size() * width)
        for i in range(ranked.size()):
            row, score = tables.doc_row[-ranked[i].second], -ranked[i].first
            self.scratch.add(row, score)
            # From the neighbour's view, this row is later than those before it.
            self._give_along(&tables.before[0], &tables.later[0], tables.later.shape[0], row, score)
            self._give_along(&tables.after[0], &tables.earlier[0], tables.earlier.shape[0], row, score)

    cdef inline void _give_along(
        self, const int32_t* links, const double* weights, int64_t steps, int32_t row, double score
    ) noexcept nogil:
        cdef int32_t link = row + 1
        cdef int64_t step
        for step in range(steps):
            link = links[link]
            if not link:
                return
            self.scratch.add(link - 1, weights[step] * score)

    cdef void _score_windows(
        self, Tables tables, vector[int32_t]& found, vector[double]& scores, vector[double]& shares
    ) noexcept nogil:
        """Score each row together with its neighbours, whose words count by weight; some rows at a time."""
        cdef vector[int32_t]* places = &self.scratch.places
        cdef vector[float] weights, counts
        cdef int64_t width = 1 + tables.earlier.shape[0] + tables.later.shape[0]
        cdef int64_t rows = max(_COUNTS_AT_ONCE // max(width * self.term_count, 1), 1)
        cdef size_t first = 0, last
        if <int64_t>places.size() < self.tables.lengths.shape[0]:
            places.resize(2 * self.tables.lengths.shape[0], 0)
        _weigh(tables, weights)
        scores.resize(found.size())
        shares.resize(found.size())
        while first < found.size():
            last = min(first + <size_t>rows, found.size())
            self._score_some(tables, found, first, last, weights, counts, scores, shares)
            first = last

    cdef void _score_some(
        self, Tables tables, vector[int32_t]& found, size_t first, size_t last, vector[float]& weights,
        vector[float]& counts, vector[double]& scores, vector[double]& shares,
    ) noexcept nogil:
        """Score the rows from `first` to `last`; `counts` is a buffer."""
        cdef vector[int32_t]* places = &self.scratch.places
        cdef vector[int32_t] docs, rows, windows
        cdef vector[float] frequencies
        cdef int64_t width = weights.size()
        cdef size_t i
        cdef int64_t at
        cdef int32_t place, term
        cdef double length, norm, score, share
        cdef double per_word = self.tables.k1 * self.tables.b / (self.mean_length * self.mean_window)
        cdef const float* of_doc
        cdef float* frequency
        rows.assign(found.begin() + first, found.begin() + last)
        _open_windows(rows, tables, windows)
        for i in range(windows.size()):
            if windows[i] >= 0 and not places[0][windows[i]]:
                docs.push_back(windows[i])
                places[0][windows[i]] = <int32_t>docs.size()
        counts.assign(docs.size() * self.term_count, 0)
        self._count_terms(docs, counts)
        frequencies.resize(self.term_count)
        frequency = frequencies.data()
        for i in range(rows.size()):
            length = 0
            for term in range(self.term_count):
                frequency[term] = 0
            for at in range(width):
                if windows[i * width + at] < 0:
                    continue
                length += weights[at] * self.tables.lengths[windows[i * width + at]]
                place = places[0][windows[i * width + at]] - 1
                of_doc = counts.data() + place * <int64_t>self.term_count
                for term in range(self.term_count):
                    frequency[term] += weights[at] * of_doc[term]
            norm = self.tables.k1 * (1 - self.tables.b) + per_word * length
            score = share = 0
            for term in range(self.term_count):
                score += self.idf[term] * (self.tables.k1 + 1) * frequency[term] / (frequency[term] + norm)
                share += self.portions[term] * min(frequency[term], 1)
            scores[first + i], shares[first + i] = score, share
        for i in range(docs.size()):
            places[0][docs[i]] = 0

    cdef void _count_terms(self, vector[int32_t]& docs, vector[float]& counts) noexcept nogil:
        """Count the occurrences of each term in some documents."""
        cdef vector[int32_t]* places = &self.scratch.places
        cdef size_t s, d
        cdef int64_t i
        cdef const int32_t* at
        cdef Span* span
        for s in range(self.spans.size()):
            span = &self.spans[s]
            if span.length > <int64_t>(_SCAN_PER_DOC * docs.size()):
                # Too many postings to read all.
                for d in range(docs.size()):
                    at = lower_bound(span.docs, span.docs + span.length, docs[d])
                    if at != span.docs + span.length and at[0] == docs[d]:
                        counts[d * self.term_count + span.term] = span.counts[at - span.docs]
            else:
                for i in range(span.length):
                    if places[0][span.docs[i]]:
                        counts[(places[0][span.docs[i]] - 1) * self.term_count + span.term] = span.counts[i]

    def named_in(self, const int32_t[::1] rows):
        """Return for each row whether its speaker has one of the names; None if no speaker has."""
        self._look_up()
        if not self.named.size():
            return None
        cdef list found = [False] * rows.shape[0]
        cdef int64_t i
        cdef size_t s
        cdef int32_t doc
        cdef const int32_t* at
        cdef const int32_t* end
        for i in range(rows.shape[0]):
            doc = self.tables.row_doc[rows[i]]
            for s in range(self.named.size()):
                end = self.named[s].docs + self.named[s].length
                at = lower_bound(self.named[s].docs, end, doc)
                if at != end and at[0] == doc:
                    found[i] = True
                    break
        return found


# Documents below which words are weighed as if there were this many. Doubled, rare and common words of a small
# namespace count more alike.
cdef int64_t _PORTION_DOCS_MIN = 1000

# Postings per wanted document from which on a binary search is quicker than reading all.
cdef int _SCAN_PER_DOC = 24
# Counts of words at a time, 4 bytes each: a text may have ten thousand words, and all items may be requested.
# Doubled, such a search takes 32 MiB instead of 16, and is hardly faster.
cdef int64_t _COUNTS_AT_ONCE = 1 << 22


cdef void _weigh(Tables tables, vector[float]& weights) noexcept nogil:
    """Append the weights of a row itself, those before it and those after it to `weights`."""
    cdef int64_t i
    weights.push_back(1)
    for i in range(tables.earlier.shape[0]):
        weights.push_back(tables.earlier[i])
    for i in range(tables.later.shape[0]):
        weights.push_back(tables.later[i])


cdef void _open_windows(vector[int32_t]& found, Tables tables, vector[int32_t]& windows) noexcept nogil:
    """Write the documents of each row and its neighbours to `windows`, in the order of `_weigh`, -1 for
    none.
    """
    cdef int64_t earlier = tables.earlier.shape[0], later = tables.later.shape[0]
    cdef int64_t width = 1 + earlier + later
    cdef const int32_t* row_doc = &tables.row_doc[0]
    cdef size_t i
    windows.resize(found.size() * width)
    for i in range(found.size()):
        windows[i * width] = row_doc[found[i]]
        _follow(&tables.before[0], row_doc, found[i], earlier, &windows[i * width + 1])
        _follow(&tables.after[0], row_doc, found[i], later, &windows[i * width + 1 + earlier])


cdef void _follow(
    const int32_t* links, const int32_t* row_doc, int32_t row, int64_t steps, int32_t* docs
) noexcept nogil:
    cdef int32_t link = row + 1
    cdef int64_t step
    for step in range(steps):
        link = links[link]
        docs[step] = row_doc[link - 1] if link else -1


cdef enum:
    _BUCKETS = 256
    _BUCKETS_WORTH = 32


cdef void _keep_best(vector[Ranked]& ranked, int64_t count) noexcept nogil:
    """Keep the `count` best, in no order.

    Most are selected by which of many equal ranges their score is in: comparing them with each other takes
    longer, because of unpredictable branches.
    """
    cdef int64_t[_BUCKETS] sizes
    cdef vector[Ranked] border
    cdef size_t i, kept = 0
    cdef double least, most, share
    cdef int bucket, last = 0
    cdef int64_t before = 0
    if <int64_t>ranked.size() <= count:
        return
    least = most = ranked[0].first
    for i in range(ranked.size()):
        least, most = min(least, ranked[i].first), max(most, ranked[i].first)
    share = (_BUCKETS - 1) / (most - least) if most > least else 0
    if count < _BUCKETS_WORTH or not share < 1e300:
        nth_element(ranked.begin(), ranked.begin() + count, ranked.end())
        ranked.resize(count)
        return
    for bucket in range(_BUCKETS):
        sizes[bucket] = 0
    for i in range(ranked.size()):
        sizes[<int>((ranked[i].first - least) * share)] += 1
    while before + sizes[last] < count:
        before += sizes[last]
        last += 1
    for i in range(ranked.size()):
        bucket = <int>((ranked[i].first - least) * share)
        if bucket == last:
            border.push_back(ranked[i])
        ranked[kept] = ranked[i]
        kept += bucket < last
    if <int64_t>border.size() > count - before:
        nth_element(border.begin(), border.begin() + (count - before), border.end())
    ranked.resize(kept)
    ranked.insert(ranked.end(), border.begin(), border.begin() + (count - before))


cdef void _keep_allowed(vector[Ranked]& ranked, const uint8_t[::1] allowed) noexcept nogil:
    cdef size_t i, kept = 0
    for i in range(ranked.size()):
        if allowed[-ranked[i].second]:
            ranked[kept] = ranked[i]
            kept += 1
    ranked.resize(kept)


cdef void _gather(vector[Ranked]& ranked, const int32_t[::1] near, vector[int32_t]& found) noexcept nogil:
    """Write the rows of both, each once, to `found`, ascending."""
    cdef size_t i, kept = 0
    cdef int64_t n
    for i in range(ranked.size()):
        found.push_back(-ranked[i].second)
    for n in range(near.shape[0]):
        found.push_back(near[n])
    sort(found.begin(), found.end())
    for i in range(found.size()):
        if not kept or found[kept - 1] != found[i]:
            found[kept] = found[i]
            kept += 1
    found.resize(kept)


cdef void _rank(vector[double]& scores, vector[Ranked]& ranked) noexcept nogil:
    """Write the scores to `ranked`, each with its index, which stands for a row: both ascend."""
    cdef size_t i
    ranked.resize(scores.size())
    for i in range(scores.size()):
        ranked[i].first, ranked[i].second = -scores[i], -<int32_t>i


cdef tuple _result(
    vector[int32_t]& found, vector[double]& scores, vector[double]& shares, const int32_t[::1] near, vector[Ranked]& best
):
    """Return the rows of the best and those in `near`, ascending, with their scores and shares.

    `found` has all of them, ascending; `best` has indexes in it.
    """
    cdef vector[uint8_t] kept
    cdef size_t i, total = 0, at = 0
    cdef int64_t n
    kept.resize(found.size())
    for i in range(best.size()):
        kept[-best[i].second] = 1
    for n in range(near.shape[0]):
        kept[lower_bound(found.begin(), found.end(), near[n]) - found.begin()] = 1
    for i in range(found.size()):
        total += kept[i]
    rows, values, portions = np.empty(total, np.int32), np.empty(total, np.float64), np.empty(total, np.float64)
    cdef int32_t[::1] to_rows = rows
    cdef double[::1] to_values = values
    cdef double[::1] to_portions = portions
    for i in range(found.size()):
        if kept[i]:
            to_rows[at], to_values[at], to_portions[at] = found[i], scores[i], shares[i]
            at += 1
    return rows, values, portions


def search_together(list lookups, list allowed, list near, list times, int64_t count, tuple widths):
    """Return for each lookup what its `search` would return if all indexes were one.

    Words are weighed by the statistics of all, and the best are the best of all; of equal ones at an end those
    of the latest time. `allowed`, `near` and `times`, which has the time of each row, have an entry for each
    lookup.
    """
    cdef int64_t widest, enough, telling_min, telling_share
    widest, enough, telling_min, telling_share = widths
    cdef bint all_allowed = all(rows is None for rows in allowed)
    cdef size_t i, size = len(lookups)
    cdef Lookup lookup
    cdef Many many
    cdef vector[vector[int32_t]] found
    cdef vector[vector[double]] scores, shares
    cdef const uint8_t[::1] mask
    cdef const int64_t[::1] its_times
    many.ranked.resize(size)
    many.rows.assign(size, NULL)
    found.resize(size)
    scores.resize(size)
    shares.resize(size)
    _pool(lookups)
    for i, lookup in enumerate(lookups):
        its_times = times[i]
        many.times.push_back(&its_times[0])
        lookup._score_alone(lookup._telling_docs(all_allowed, telling_min, telling_share))
        lookup.scratch.take_out(many.ranked[i])
        many.rows[i] = &lookup.tables.doc_row[0]
    if all_allowed:
        _keep_best_of_all(many, widest)
    for i, lookup in enumerate(lookups):
        lookup._spread(lookup.tables, many.ranked[i])
        lookup.scratch.take_out(many.ranked[i])
        many.rows[i] = NULL
        if allowed[i] is not None:
            mask = allowed[i]
            _keep_allowed(many.ranked[i], mask)
    _keep_best_of_all(many, enough)
    for i, lookup in enumerate(lookups):
        _gather(many.ranked[i], near[i], found[i])
        lookup._score_windows(lookup.tables, found[i], scores[i], shares[i])
        _rank(scores[i], many.ranked[i])
        many.rows[i] = found[i].data()
    _keep_best_of_all(many, count)
    return [_result(found[i], scores[i], shares[i], near[i], many.ranked[i]) for i in range(size)]


cdef void _pool(list lookups):
    """Give all lookups of a query the statistics of all their indexes."""
    cdef Lookup lookup, first = lookups[0]
    cdef int64_t live_count = 0
    cdef double length = 0, window = 0
    cdef vector[int64_t] doc_counts
    cdef int32_t term
    doc_counts.assign(first.term_count, 0)
    for lookup in lookups:
        lookup._look_up()
        lookup._count()
        live_count += lookup.tables.live_count
        length += lookup.tables.mean_length * lookup.tables.live_count
        window += lookup.tables.mean_window * lookup.tables.live_count
        for term in range(first.term_count):
            doc_counts[term] += lookup.doc_counts[term]
    for lookup in lookups:
        lookup.live_count, lookup.doc_counts = live_count, doc_counts
        lookup.mean_length = max(length / max(live_count, 1), 1e-9)
        lookup.mean_window = window / live_count if live_count else 1.0
        lookup._weigh_terms()


cdef struct Many:
    vector[vector[Ranked]] ranked
    vector[const int32_t*] rows  # of what is ranked; NULL: rows are
    vector[const int64_t*] times


cdef inline pair[int64_t, int64_t] _age(Many& many, size_t i, size_t n) noexcept nogil:
    """Return what orders equal ones: the latest time is the least, then the last index and row."""
    cdef int32_t row = -many.ranked[i][n].second
    if many.rows[i] != NULL:
        row = many.rows[i][row]
    return pair[int64_t, int64_t](-many.times[i][row], -(<int64_t>i << 32 | row))


cdef void _keep_best_of_all(Many& many, int64_t count) noexcept nogil:
    """Keep the `count` best of all lists together."""
    cdef vector[double] scores
    cdef vector[pair[int64_t, int64_t]] equal
    cdef double last
    cdef int64_t better = 0
    cdef size_t i, n, kept
    for i in range(many.ranked.size()):
        for n in range(many.ranked[i].size()):
            scores.push_back(many.ranked[i][n].first)
    if <int64_t>scores.size() <= count or count < 1:
        return
    nth_element(scores.begin(), scores.begin() + (count - 1), scores.end())
    last = scores[count - 1]
    for i in range(many.ranked.size()):
        for n in range(many.ranked[i].size()):
            better += many.ranked[i][n].first < last
            if many.ranked[i][n].first == last:
                equal.push_back(_age(many, i, n))
    nth_element(equal.begin(), equal.begin() + (count - better - 1), equal.end())
    for i in range(many.ranked.size()):
        kept = 0
        for n in range(many.ranked[i].size()):
            if many.ranked[i][n].first < last or (
                many.ranked[i][n].first == last and not (equal[count - better - 1] < _age(many, i, n))
            ):
                many.ranked[i][kept] = many.ranked[i][n]
                kept += 1
        many.ranked[i].resize(kept)
