// A kernel's way to the simulated chip: one function, which torchemu's Python stands behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "torchemu/elements.h"

extern "C" void torchemu_call(const char *operation, int64_t *words, int count, const char *file, int line);

// Gives a function the line of its caller, which reports name.
#define TORCHEMU_CALLER const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace torchemu {

// Operands of an operation, as the 64-bit words that cross to Python. The first word is the answer.
class Operands {
  public:
    Operands &number(int64_t value) {
        words_[count_++] = value;
        return *this;
    }

    Operands &real(double value) {
        std::memcpy(&words_[count_++], &value, sizeof value);
        return *this;
    }

    // An operand that knows its own words: a tile, a tensor in memory.
    template <typename T>
    Operands &add(const T &operand) {
        operand.describe(*this);
        return *this;
    }

    int64_t call(const char *operation, const char *file, int line) {
        torchemu_call(operation, words_, count_, file, line);
        return words_[0];
    }

  private:
    int64_t words_[80] = {0};
    int count_ = 1;
};

}  // namespace torchemu
