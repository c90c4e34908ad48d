// ModelManifest: what a model file says, ready for an architecture to read. Knows nothing of
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/gguf_file.h"

namespace strata {

class ModelManifest {
 public:
  static Result<ModelManifest> open(const std::string& path);
  // Fails when `general.architecture` is absent or the file holds no tensors where
  // `require_tensors` is set (a vocabulary-only file has none).
  static Result<ModelManifest> from_file(GgufFile file, bool require_tensors = true);

  const GgufFile& file() const { return file_; }
  const Metadata& metadata() const { return file_.metadata(); }
  const std::string& architecture() const { return architecture_; }
  std::string name() const;  // general.name, else the file's name

  // Hyper-parameters: `key` without the "<architecture>." prefix. Integers must lie in
  // [minimum, maximum], floats must be finite; errors name the full key and the range.
  Result<std::int64_t> integer(std::string_view key, std::int64_t minimum,
                               std::int64_t maximum) const;
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t fallback, std::int64_t minimum,
                                  std::int64_t maximum) const;
  Result<double> real(std::string_view key) const;
  Result<double> real_or(std::string_view key, double fallback) const;
  Result<bool> boolean_or(std::string_view key, bool fallback) const;
  Result<std::string> string_or(std::string_view key, std::string_view fallback) const;
  // One value per layer: from an array of exactly `layers` elements, or a scalar repeated.
  Result<std::vector<std::int64_t>> per_layer(std::string_view key, std::size_t layers,
                                              std::int64_t minimum, std::int64_t maximum) const;
  bool has(std::string_view key) const;
  std::string full_key(std::string_view key) const;  // "<architecture>.<key>"

  // A tensor that must be there with exactly this shape (row length first).
  Result<const TensorInfo*> tensor(std::string_view name,
                                   std::initializer_list<std::uint64_t> shape) const;
  // nullptr when absent; an error when present with another shape.
  Result<const TensorInfo*> optional_tensor(std::string_view name,
                                            std::initializer_list<std::uint64_t> shape) const;

 private:
  GgufFile file_;
  std::string architecture_;
};

}  // namespace strata
