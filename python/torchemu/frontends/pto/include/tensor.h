// What a kernel gets for a tensor, and how an orchestration makes one.
#pragma once

#include <cstdint>

#include "data_type.h"

constexpr int RUNTIME_MAX_TENSOR_DIMS = 5;

struct PTOBufferHandle {
    uint64_t addr = 0;
    uint64_t size = 0;
};

struct Tensor {
    PTOBufferHandle buffer;
    uint64_t start_offset = 0;  // elements from the buffer's beginning to the tensor's
    uint32_t ndims = 0;
    DataType dtype = DataType::FLOAT32;
    uint32_t shapes[RUNTIME_MAX_TENSOR_DIMS] = {0};
    uint32_t strides[RUNTIME_MAX_TENSOR_DIMS] = {0};  // elements

    uint64_t numel() const {
        uint64_t n = 1;
        for (uint32_t i = 0; i < ndims; ++i) n *= shapes[i];
        return n;
    }

    template <typename T>
    T *data_as() const {
        return reinterpret_cast<T *>(buffer.addr) + start_offset;
    }

    // A part of the tensor: so many elements in each dimension, from offsets on.
    Tensor view(const uint32_t sizes[], const uint32_t offsets[]) const {
        Tensor part = *this;
        for (uint32_t i = 0; i < ndims; ++i) {
            part.shapes[i] = sizes[i];
            part.start_offset += static_cast<uint64_t>(offsets[i]) * strides[i];
        }
        return part;
    }
};

static_assert(sizeof(Tensor) == 72);

inline Tensor make_tensor_external(void *data, const uint32_t shapes[], uint32_t ndims, DataType dtype = DataType::FLOAT32) {
    Tensor t;
    t.buffer.addr = reinterpret_cast<uint64_t>(data);
    t.ndims = ndims;
    t.dtype = dtype;
    uint64_t step = 1;
    for (int i = static_cast<int>(ndims) - 1; i >= 0; --i) {
        t.shapes[i] = shapes[i];
        t.strides[i] = static_cast<uint32_t>(step);
        step *= shapes[i];
    }
    t.buffer.size = step * get_element_size(dtype);
    return t;
}

// The names of later versions, for both of their runtimes.
namespace simpler {
namespace tmr {
using ::Tensor;
}
namespace hbg {
using ::Tensor;
}
}  // namespace simpler
