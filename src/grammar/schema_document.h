// A JSON schema as a document: what its references lead to, and its parts without them.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/schema_merge.h"

namespace strata {

class SchemaDocument {
 public:
  using Value = boost::json::value;
  using Object = boost::json::object;
  using Path = std::string;  // a JSON pointer

  static constexpr std::size_t kMostNesting = 64;
  static constexpr std::size_t kMostAlternatives = 256;
  static constexpr std::size_t kMostCopied = 200'000;  // values, to merge schemas

  // Keeps a reference to `root`. Errors begin with `where`.
  SchemaDocument(const Value& root, std::string_view where) : root_(root), where_(where) {}

  // Schemas without $ref, allOf, anyOf and oneOf at their top, which together describe what
  // `schema`, a part of the document, does. Those that clearly describe nothing are left out.
  Result<std::vector<Object>> alternatives(const Value& schema, const Path& path);
  // The same of the whole document, for objects alone; not none.
  Result<std::vector<Object>> objects();

  // As `type` says, or the types that keywords are for; none: all.
  Result<std::vector<std::string>> types_of(const Object& schema, const Path& path) const;
  Result<std::vector<std::string>> required_names(const Object& schema, const Path& path) const;
  // kUnsupported where a keyword is not read.
  Status check_keywords(const Object& schema, const Path& path) const;

  Status wrong(const Path& path, std::string_view what) const;
  Status no_support(const Path& path, std::string_view what) const;

 protected:
  Result<const Value*> resolve(std::string_view pointer, const Path& path) const;
  // A schema that is both, without $ref in what comes of `part`.
  Result<Object> merged(const Object& base, const Value& part, const Path& path);

  const Value& root_;
  std::string where_;

 private:
  Result<Object> joined(const Object& a, const Object& b, const Path& path);
  Status collect(const Object& schema, const Path& path, std::size_t nesting,
                 std::vector<Object>& out);
  Status collect_any(const Object& schema, std::string_view key, const Path& path,
                     std::size_t nesting, std::vector<Object>& out);

  std::size_t copied_ = 0;
};

}  // namespace strata
