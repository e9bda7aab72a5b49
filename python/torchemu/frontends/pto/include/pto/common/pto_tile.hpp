// Tensors in memory and tiles in scratch memory: places with sizes. Elements are the chip's, and instructions get at them.
#pragma once

#include "pto/common/constants.hpp"
#include "torchemu/host.h"

namespace torchemu {

// Five numbers, of which some are known when a kernel is compiled.
template <int... Fixed>
struct Five {
    static_assert(sizeof...(Fixed) == 5);
    static constexpr int fixed[5] = {Fixed...};
    static constexpr int dynamic = (0 + ... + (Fixed == pto::DYNAMIC));
    int64_t at[5] = {Fixed...};

    Five() = default;

    // As many numbers as are not known, or all five.
    template <typename... T, typename = std::enable_if_t<(sizeof...(T) > 0) && (std::is_convertible_v<T, int64_t> && ...)>>
    Five(T... given) {
        static_assert(sizeof...(T) == dynamic || sizeof...(T) == 5, "a Shape or Stride takes its dynamic numbers, or five");
        const int64_t all[] = {static_cast<int64_t>(given)...};
        for (int i = 0, next = 0; i < 5; ++i) {
            if (fixed[i] == pto::DYNAMIC) at[i] = all[sizeof...(T) == 5 ? i : next++];
        }
    }
};

}  // namespace torchemu

namespace pto {

template <int A = DYNAMIC, int B = DYNAMIC, int C = DYNAMIC, int D = DYNAMIC, int E = DYNAMIC>
struct Shape : torchemu::Five<A, B, C, D, E> {
    static constexpr int staticShape[5] = {A, B, C, D, E};
    using torchemu::Five<A, B, C, D, E>::Five;
};

template <int A = DYNAMIC, int B = DYNAMIC, int C = DYNAMIC, int D = DYNAMIC, int E = DYNAMIC>
struct Stride : torchemu::Five<A, B, C, D, E> {
    static constexpr int staticStride[5] = {A, B, C, D, E};
    using torchemu::Five<A, B, C, D, E>::Five;
};

enum class GlobalTensorDim { DIM_0, DIM_1, DIM_2, DIM_3, DIM_4, TOTAL_DIM };

// Elements in some chip's memory, in up to five dimensions with steps of their own.
template <typename Element, typename Shape_, typename Stride_, Layout Layout_ = Layout::ND>
class GlobalTensor {
  public:
    using DType = Element;
    using RawDType = std::remove_cv_t<Element>;
    using Shape = Shape_;
    using Stride = Stride_;
    static constexpr Layout layout = Layout_;

    GlobalTensor() = default;
    GlobalTensor(Element *data) : data_(data) { fill(); }
    GlobalTensor(Element *data, const Shape_ &shape) : data_(data), shape_(shape) { fill(); }
    GlobalTensor(Element *data, const Shape_ &shape, const Stride_ &stride) : data_(data), shape_(shape), stride_(stride) {}

    Element *data() const { return data_; }
    void SetAddr(Element *data) { data_ = data; }
    int64_t GetShape(int i) const { return shape_.at[i]; }
    int64_t GetShape(GlobalTensorDim i) const { return shape_.at[static_cast<int>(i)]; }
    int64_t GetStride(int i) const { return stride_.at[i]; }
    int64_t GetStride(GlobalTensorDim i) const { return stride_.at[static_cast<int>(i)]; }

    void describe(torchemu::Operands &to) const {
        to.number(static_cast<int64_t>(reinterpret_cast<uintptr_t>(data_))).number(torchemu::element_number<Element>());
        for (int i = 0; i < 5; ++i) to.number(shape_.at[i]);
        for (int i = 0; i < 5; ++i) to.number(stride_.at[i]);
        to.number(static_cast<int64_t>(Layout_));
    }

  private:
    // Steps that nobody gave are those of elements one after another.
    void fill() {
        for (int i = 4; i >= 0; --i) {
            if (stride_.at[i] == DYNAMIC) stride_.at[i] = i == 4 ? 1 : stride_.at[i + 1] * shape_.at[i + 1];
        }
    }

    Element *data_ = nullptr;
    Shape_ shape_;
    Stride_ stride_;
};

// Rows and columns of elements in scratch memory, from where TASSIGN puts them. Boxes within a tile, which the matrix
// unit of the hardware wants, are not made: its elements lie row by row.
template <TileType Loc_, typename Element, int Rows_, int Cols_, BLayout Big = BLayout::RowMajor, int RowValid = Rows_,
          int ColValid = Cols_, SLayout Small = SLayout::NoneBox, int SmallBytes = 512, PadValue Pad = PadValue::Null,
          CompactMode Compact = CompactMode::Null>
class Tile {
  public:
    using DType = Element;
    static constexpr TileType Loc = Loc_;
    static constexpr int Rows = Rows_, Cols = Cols_, ValidRow = RowValid, ValidCol = ColValid, Numel = Rows_ * Cols_;
    static constexpr bool isRowMajor = Big == BLayout::RowMajor;
    static constexpr BLayout BFractal = Big;
    static constexpr SLayout SFractal = Small;
    static_assert(Rows_ > 0 && Cols_ > 0 && RowValid <= Rows_ && ColValid <= Cols_, "a Tile with more valid elements than it has");

    Tile() = default;
    template <int R = RowValid, int C = ColValid, typename = std::enable_if_t<R == DYNAMIC && C == DYNAMIC>>
    Tile(size_t rows, size_t columns) : valid_rows_(rows), valid_columns_(columns) {}
    template <int R = RowValid, int C = ColValid, typename = std::enable_if_t<(R == DYNAMIC) != (C == DYNAMIC)>>
    explicit Tile(size_t dynamic) {
        (RowValid == DYNAMIC ? valid_rows_ : valid_columns_) = dynamic;
    }

    int GetValidRow() const { return static_cast<int>(valid_rows_); }
    int GetValidCol() const { return static_cast<int>(valid_columns_); }
    void SetValidShape(int rows, int columns) { valid_rows_ = rows, valid_columns_ = columns; }

    Element GetValue(uint32_t offset, TORCHEMU_CALLER) const {
        int64_t bits = torchemu::Operands().add(*this).number(offset).call("GetValue", file, line);
        Element value;
        std::memcpy(&value, &bits, sizeof value);
        return value;
    }

    void SetValue(uint32_t offset, Element value, TORCHEMU_CALLER) {
        int64_t bits = 0;
        std::memcpy(&bits, &value, sizeof value);
        torchemu::Operands().add(*this).number(offset).number(bits).call("SetValue", file, line);
    }

    void assign(int64_t offset) { offset_ = offset; }
    int64_t offset() const { return offset_; }

    void describe(torchemu::Operands &to) const {
        constexpr bool by_rows = Big == BLayout::RowMajor || Small != SLayout::NoneBox;
        to.number(static_cast<int64_t>(Loc_)).number(offset_).number(torchemu::element_number<Element>());
        to.number(Rows_).number(Cols_).number(valid_rows_).number(valid_columns_).number(by_rows);
    }

  private:
    int64_t offset_ = -1;  // nowhere yet
    int64_t valid_rows_ = RowValid == DYNAMIC ? Rows_ : RowValid;
    int64_t valid_columns_ = ColValid == DYNAMIC ? Cols_ : ColValid;
};

template <typename Element, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileLeft = Tile<TileType::Left, Element, Rows, Cols, BLayout::RowMajor, RowValid, ColValid, SLayout::RowMajor, 512>;

template <typename Element, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileRight = Tile<TileType::Right, Element, Rows, Cols, BLayout::RowMajor, RowValid, ColValid, SLayout::ColMajor, 512>;

template <typename Element, int Rows, int Cols, int RowValid = Rows, int ColValid = Cols>
using TileAcc = Tile<TileType::Acc, Element, Rows, Cols, BLayout::ColMajor, RowValid, ColValid, SLayout::RowMajor, 1024>;

}  // namespace pto
