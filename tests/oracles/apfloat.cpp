// A filter around LLVM's APFloat: apfloat SOURCE TARGET MODE < codes > codes, 64-bit words of the host's byte order.
// SOURCE and TARGET are our names of formats; MODE is one of ours, as far as LLVM knows it. A NaN is written as ~0.
// Of its own it does nothing but call convert() or convertToInteger(): what they give is the oracle's answer.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APSInt.h"

using llvm::APFloat;
using llvm::APInt;
using llvm::fltSemantics;
using llvm::RoundingMode;

static const std::map<std::string, const fltSemantics *> floats = {
    {"float16", &APFloat::IEEEhalf()},
    {"bfloat16", &APFloat::BFloat()},
    {"tfloat32", &APFloat::FloatTF32()},
    {"float32", &APFloat::IEEEsingle()},
    {"float64", &APFloat::IEEEdouble()},
    {"float8_e3m4", &APFloat::Float8E3M4()},
    {"float8_e4m3", &APFloat::Float8E4M3()},
    {"float8_e4m3fn", &APFloat::Float8E4M3FN()},
    {"float8_e4m3fnuz", &APFloat::Float8E4M3FNUZ()},
    {"float8_e4m3b11fnuz", &APFloat::Float8E4M3B11FNUZ()},
    {"float8_e5m2", &APFloat::Float8E5M2()},
    {"float8_e5m2fnuz", &APFloat::Float8E5M2FNUZ()},
    {"float8_e8m0fnu", &APFloat::Float8E8M0FNU()},
    {"float6_e2m3fn", &APFloat::Float6E2M3FN()},
    {"float6_e3m2fn", &APFloat::Float6E3M2FN()},
    {"float4_e2m1fn", &APFloat::Float4E2M1FN()},
};

static const std::map<std::string, RoundingMode> modes = {
    {"nearest_even", RoundingMode::NearestTiesToEven}, {"nearest_away", RoundingMode::NearestTiesToAway},
    {"trunc", RoundingMode::TowardZero},               {"floor", RoundingMode::TowardNegative},
    {"ceil", RoundingMode::TowardPositive},
};

int main(int argc, char **argv) {
  if (argc != 4 || !floats.count(argv[1]) || !modes.count(argv[3])) return 2;
  const fltSemantics &source = *floats.at(argv[1]);
  const RoundingMode mode = modes.at(argv[3]);
  const std::string name = argv[2];
  const auto found = floats.find(name);
  const bool is_unsigned = name[0] == 'u';
  const unsigned width = found == floats.end() ? std::atoi(name.c_str() + (is_unsigned ? 4 : 3)) : 0;
  if (found == floats.end() && (width < 1 || width > 64)) return 2;
  std::vector<uint64_t> words(1 << 16);
  while (size_t n = std::fread(words.data(), sizeof(uint64_t), words.size(), stdin)) {
    for (size_t i = 0; i < n; ++i) {
      APFloat value(source, APInt(APFloat::getSizeInBits(source), words[i]));
      bool inexact;
      if (width) {
        llvm::APSInt whole(width, is_unsigned);
        value.convertToInteger(whole, mode, &inexact);
        words[i] = whole.getZExtValue();
      } else {
        value.convert(*found->second, mode, &inexact);
        words[i] = value.isNaN() ? ~uint64_t(0) : value.bitcastToAPInt().getZExtValue();
      }
    }
    if (std::fwrite(words.data(), sizeof(uint64_t), n, stdout) != n) return 1;
  }
  return 0;
}
