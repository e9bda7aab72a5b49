// Types of elements, and the numbers by which Python knows them: those of DataType.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace torchemu {

inline uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float float_of(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint16_t to_bfloat16(float value) {
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);  // it stays not a number
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float from_bfloat16(uint16_t bits) { return float_of(static_cast<uint32_t>(bits) << 16); }

inline uint16_t to_half(float value) {
    _Float16 rounded = static_cast<_Float16>(value);
    uint16_t bits;
    std::memcpy(&bits, &rounded, sizeof bits);
    return bits;
}

inline float from_half(uint16_t bits) {
    _Float16 value;
    std::memcpy(&value, &bits, sizeof bits);
    return static_cast<float>(value);
}

// A type of 16 bits that calculates as float and rounds to the nearest, ties to even.
template <uint16_t (*Round)(float), float (*Widen)(uint16_t)>
struct Narrow {
    uint16_t bits = 0;

    Narrow() = default;
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    Narrow(T value) : bits(Round(static_cast<float>(value))) {}
    operator float() const { return Widen(bits); }
    Narrow &operator+=(float other) { return *this = Narrow(Widen(bits) + other); }
    Narrow &operator-=(float other) { return *this = Narrow(Widen(bits) - other); }
    Narrow &operator*=(float other) { return *this = Narrow(Widen(bits) * other); }
    Narrow &operator/=(float other) { return *this = Narrow(Widen(bits) / other); }
};

// The number of a type of elements.
template <typename T>
constexpr int64_t element_number();

}  // namespace torchemu

using half = torchemu::Narrow<torchemu::to_half, torchemu::from_half>;
using bfloat16_t = torchemu::Narrow<torchemu::to_bfloat16, torchemu::from_bfloat16>;
using float16_t = half;
using float32_t = float;

namespace torchemu {

template <typename T>
constexpr int64_t element_number() {
    using E = std::remove_cv_t<T>;
    if constexpr (std::is_same_v<E, float>) return 0;
    else if constexpr (std::is_same_v<E, half>) return 1;
    else if constexpr (std::is_same_v<E, bfloat16_t>) return 6;
    else if constexpr (std::is_integral_v<E> && sizeof(E) == 8) return std::is_signed_v<E> ? 7 : 8;
    else if constexpr (std::is_integral_v<E> && sizeof(E) == 4) return std::is_signed_v<E> ? 2 : 10;
    else if constexpr (std::is_integral_v<E> && sizeof(E) == 2) return std::is_signed_v<E> ? 3 : 9;
    else if constexpr (std::is_integral_v<E> && sizeof(E) == 1) return std::is_signed_v<E> ? 4 : 5;
    else static_assert(sizeof(E) == 0, "torchemu's PEs have no elements of this type");
}

}  // namespace torchemu
