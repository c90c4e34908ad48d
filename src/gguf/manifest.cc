#include "gguf/manifest.h"

#include <cmath>
#include <filesystem>

#include "base/printable.h"

namespace strata {
namespace {

Status check_range(std::string_view key, std::int64_t value, std::int64_t minimum,
                   std::int64_t maximum) {
  if (value >= minimum && value <= maximum) return {};
  return corrupt("key `{}` is {}, where {} to {} is expected", printable(key), value, minimum,
                 maximum);
}

// "2048 x 32000", row length first.
template <typename Range>
std::string shape_text(const Range& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

}  // namespace

Result<ModelManifest> ModelManifest::open(const std::string& path) {
  STRATA_ASSIGN(GgufFile file, GgufFile::open(path));
  return from_file(std::move(file));
}

Result<ModelManifest> ModelManifest::from_file(GgufFile file, bool require_tensors) {
  ModelManifest manifest;
  manifest.file_ = std::move(file);
  const std::string path = printable(manifest.file_.paths().front());
  auto architecture = manifest.metadata().get_string("general.architecture");
  if (!architecture.ok()) return architecture.status().with_context(path);
  if (architecture->empty()) return corrupt("{}: key `general.architecture` is empty", path);
  manifest.architecture_ = *architecture;
  if (require_tensors && manifest.file_.tensors().empty())
    return corrupt("{}: holds no tensors, only a vocabulary; name a whole model", path);
  return manifest;
}

std::string ModelManifest::name() const {
  const auto name = metadata().get_string("general.name");
  if (name.ok() && !name->empty()) return std::string(*name);
  return std::filesystem::path(file_.paths().front()).filename().string();
}

std::string ModelManifest::full_key(std::string_view key) const {
  return fmt::format("{}.{}", architecture_, key);
}

bool ModelManifest::has(std::string_view key) const { return metadata().contains(full_key(key)); }

Result<std::int64_t> ModelManifest::integer(std::string_view key, std::int64_t minimum,
                                            std::int64_t maximum) const {
  const std::string full = full_key(key);
  STRATA_ASSIGN(const std::int64_t value, metadata().get_integer(full));
  STRATA_TRY(check_range(full, value, minimum, maximum));
  return value;
}

Result<std::int64_t> ModelManifest::integer_or(std::string_view key, std::int64_t fallback,
                                               std::int64_t minimum, std::int64_t maximum) const {
  if (!has(key)) return fallback;
  return integer(key, minimum, maximum);
}

Result<double> ModelManifest::real(std::string_view key) const {
  const std::string full = full_key(key);
  STRATA_ASSIGN(const double value, metadata().get_float(full));
  if (!std::isfinite(value))
    return corrupt("key `{}` is {}, where a finite number is expected", printable(full), value);
  return value;
}

Result<double> ModelManifest::real_or(std::string_view key, double fallback) const {
  if (!has(key)) return fallback;
  return real(key);
}

Result<bool> ModelManifest::boolean_or(std::string_view key, bool fallback) const {
  if (!has(key)) return fallback;
  return metadata().get_bool(full_key(key));
}

Result<std::string> ModelManifest::string_or(std::string_view key,
                                             std::string_view fallback) const {
  if (!has(key)) return std::string(fallback);
  STRATA_ASSIGN(const std::string_view text, metadata().get_string(full_key(key)));
  return std::string(text);
}

Result<std::vector<std::int64_t>> ModelManifest::per_layer(std::string_view key, std::size_t layers,
                                                           std::int64_t minimum,
                                                           std::int64_t maximum) const {
  const std::string full = full_key(key);
  const MetadataEntry* entry = metadata().find(full);
  if (entry == nullptr || entry->type != ValueType::kArray) {
    STRATA_ASSIGN(const std::int64_t value, integer(key, minimum, maximum));
    return std::vector<std::int64_t>(layers, value);
  }
  const auto context = fmt::format("key `{}`", printable(full));
  auto values = std::get<MetadataArray>(entry->value).as_integers();
  if (!values.ok()) return values.status().with_context(context);
  if (values->size() != layers)
    return corrupt("{} has {} values, where one for each of {} layers is expected", context,
                   values->size(), layers);
  for (const std::int64_t value : *values) STRATA_TRY(check_range(full, value, minimum, maximum));
  return values;
}

Result<const TensorInfo*> ModelManifest::tensor(std::string_view name,
                                                std::initializer_list<std::uint64_t> shape) const {
  STRATA_ASSIGN(const TensorInfo* found, optional_tensor(name, shape));
  if (found == nullptr)
    return corrupt("tensor `{}` ({}) is missing; the file is no complete {} model", printable(name),
                   shape_text(shape), printable(architecture_));
  return found;
}

Result<const TensorInfo*> ModelManifest::optional_tensor(
    std::string_view name, std::initializer_list<std::uint64_t> shape) const {
  const TensorInfo* found = file_.find_tensor(name);
  if (found == nullptr) return found;
  const std::span<const std::uint64_t> stored(found->shape);
  const std::vector<std::uint64_t> wanted(shape);
  const auto at = [&](std::size_t d) { return d < wanted.size() ? wanted[d] : 1; };
  bool same = wanted.size() <= stored.size();
  for (std::size_t d = 0; d < stored.size(); ++d) same = same && stored[d] == at(d);
  if (!same)
    return corrupt("tensor `{}` has shape {}, where {} is expected", printable(name),
                   shape_text(stored.first(found->dimensions)), shape_text(shape));
  return found;
}

}  // namespace strata
