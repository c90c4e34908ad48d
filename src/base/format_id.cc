#include "base/format_id.h"

#include <algorithm>
#include <array>

namespace strata {
namespace {

constexpr std::array kFormats = {
    FormatInfo{FormatId::F32, "F32", 1, 4},
    FormatInfo{FormatId::F16, "F16", 1, 2},
    FormatInfo{FormatId::Q4_0, "Q4_0", 32, 18},
    FormatInfo{FormatId::Q4_1, "Q4_1", 32, 20},
    FormatInfo{FormatId::Q5_0, "Q5_0", 32, 22},
    FormatInfo{FormatId::Q5_1, "Q5_1", 32, 24},
    FormatInfo{FormatId::Q8_0, "Q8_0", 32, 34},
    FormatInfo{FormatId::Q8_1, "Q8_1", 32, 36},
    FormatInfo{FormatId::Q2_K, "Q2_K", 256, 84},
    FormatInfo{FormatId::Q3_K, "Q3_K", 256, 110},
    FormatInfo{FormatId::Q4_K, "Q4_K", 256, 144},
    FormatInfo{FormatId::Q5_K, "Q5_K", 256, 176},
    FormatInfo{FormatId::Q6_K, "Q6_K", 256, 210},
    FormatInfo{FormatId::Q8_K, "Q8_K", 256, 292},
    FormatInfo{FormatId::IQ2_XXS, "IQ2_XXS", 256, 66},
    FormatInfo{FormatId::IQ2_XS, "IQ2_XS", 256, 74},
    FormatInfo{FormatId::IQ3_XXS, "IQ3_XXS", 256, 98},
    FormatInfo{FormatId::IQ1_S, "IQ1_S", 256, 50},
    FormatInfo{FormatId::IQ4_NL, "IQ4_NL", 32, 18},
    FormatInfo{FormatId::IQ3_S, "IQ3_S", 256, 110},
    FormatInfo{FormatId::IQ2_S, "IQ2_S", 256, 82},
    FormatInfo{FormatId::IQ4_XS, "IQ4_XS", 256, 136},
    FormatInfo{FormatId::I8, "I8", 1, 1},
    FormatInfo{FormatId::I16, "I16", 1, 2},
    FormatInfo{FormatId::I32, "I32", 1, 4},
    FormatInfo{FormatId::I64, "I64", 1, 8},
    FormatInfo{FormatId::F64, "F64", 1, 8},
    FormatInfo{FormatId::IQ1_M, "IQ1_M", 256, 56},
    FormatInfo{FormatId::BF16, "BF16", 1, 2},
    FormatInfo{FormatId::TQ1_0, "TQ1_0", 256, 54},
    FormatInfo{FormatId::TQ2_0, "TQ2_0", 256, 66},
    FormatInfo{FormatId::MXFP4, "MXFP4", 32, 17},
    FormatInfo{FormatId::NVFP4, "NVFP4", 64, 36},
};

}  // namespace

std::optional<FormatInfo> format_info(std::uint32_t gguf_type) {
  return format_info(static_cast<FormatId>(gguf_type));
}

std::optional<FormatInfo> format_info(FormatId id) {
  const auto* found = std::ranges::find(kFormats, id, &FormatInfo::id);
  if (found == kFormats.end()) return std::nullopt;
  return *found;
}

std::string_view format_name(FormatId id) {
  const auto* found = std::ranges::find(kFormats, id, &FormatInfo::id);
  return found == kFormats.end() ? "unknown format" : found->name;
}

std::optional<FormatId> format_by_name(std::string_view name) {
  const auto* found = std::ranges::find(kFormats, name, &FormatInfo::name);
  if (found == kFormats.end()) return std::nullopt;
  return found->id;
}

}  // namespace strata
