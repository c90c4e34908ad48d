// A JSON schema as a document: what its references lead to, and its parts without them.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/schema_merge.h"
#include "grammar/schema_work.h"

namespace strata {

class SchemaDocument {
 public:
  using Value = boost::json::value;
  using Object = boost::json::object;
  using Path = std::string;  // a JSON pointer

  static constexpr std::size_t kMostNesting = 64;
  static constexpr std::size_t kMostAlternatives = 256;

  // Keeps references to `root`, `work` and `notes`. Errors begin with `where`. Without `notes`,
  // what could be left out with a note is an error.
  SchemaDocument(const Value& root, std::string_view where, SchemaWork& work,
                 SchemaNotes* notes = nullptr)
      : root_(root), where_(where), work_(work), notes_(notes) {}

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

  // Of the work that all readers share.
  Status spend(std::size_t steps, const Path& path) const;
  Status wrong(const Path& path, std::string_view what) const;
  Status no_support(const Path& path, std::string_view what) const;
  // For a keyword of the schema at `path` that is not held: a note, or where there are none, `why`
  // as an error.
  Status leave_out(const Path& path, std::string_view keyword, std::string_view why) const;

 protected:
  Result<const Value*> resolve(std::string_view pointer, const Path& path) const;
  // A schema that is both, without $ref in what comes of `part`.
  Result<Object> merged(Object base, const Value& part, const Path& path);
  // A copy, but for one keyword.
  Result<Object> without(const Object& schema, std::string_view key, const Path& path) const;

  const Value& root_;
  std::string where_;
  SchemaWork& work_;
  SchemaNotes* notes_;

 private:
  Result<Object> joined(Object a, const Object& b, const Path& path);
  Status collect(const Object& schema, const Path& path, std::size_t nesting,
                 std::vector<Object>& out);
  Status collect_any(const Object& schema, std::string_view key, const Path& path,
                     std::size_t nesting, std::vector<Object>& out);
};

}  // namespace strata
