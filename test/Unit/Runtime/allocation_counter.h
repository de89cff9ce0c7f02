#ifndef BOWLINE_TEST_UNIT_RUNTIME_ALLOCATION_COUNTER_H_
#define BOWLINE_TEST_UNIT_RUNTIME_ALLOCATION_COUNTER_H_

#include <cstdint>

namespace bowline::testing {

// Heap allocations of this process so far, by any thread and any library: malloc and its kin, and so operator new.
uint64_t HeapAllocations();

// Whether this build can count: sanitizers bring their own allocator.
bool CanCountHeapAllocations();

}  // namespace bowline::testing

#endif  // BOWLINE_TEST_UNIT_RUNTIME_ALLOCATION_COUNTER_H_
