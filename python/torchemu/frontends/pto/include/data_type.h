// Types of elements, by the numbers that the host knows them by too.
#pragma once

#include <cstdint>

enum class DataType : uint32_t { FLOAT32, FLOAT16, INT32, INT16, INT8, UINT8, BFLOAT16, INT64, UINT64, UINT16, UINT32 };

inline uint64_t get_element_size(DataType type) {
    switch (type) {
        case DataType::INT8:
        case DataType::UINT8:
            return 1;
        case DataType::FLOAT16:
        case DataType::BFLOAT16:
        case DataType::INT16:
        case DataType::UINT16:
            return 2;
        case DataType::INT64:
        case DataType::UINT64:
            return 8;
        default:
            return 4;
    }
}
