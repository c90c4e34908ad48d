// Reads schemas: what json_schema.h promises.
#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/json_text.h"
#include "grammar/schema_merge.h"

namespace strata {

class SchemaReader {
 public:
  using Id = GrammarBuilder::Id;
  using RuleId = GrammarBuilder::RuleId;
  using Value = boost::json::value;
  using Object = boost::json::object;
  using Path = std::string;  // a JSON pointer

  // Keeps references to `json` and `root`.
  SchemaReader(JsonText& json, const Value& root, std::string_view where)
      : builder_(json.builder()), json_(json), root_(root), where_(where) {}

  Result<Id> read();

 private:
  struct Member {
    std::string name;
    Id text = 0;
    bool required = false;
  };

  Status wrong(const Path& path, std::string_view what) const;
  Status no_support(const Path& path, std::string_view what) const;

  Result<Id> read_schema(const Value& schema, const Path& path, std::size_t nesting);
  Result<Id> read_object(const Object& schema, const Path& path, std::size_t nesting);
  // As `type` says, or the types that keywords are for; none: all.
  Result<std::vector<std::string>> types_of(const Object& schema, const Path& path) const;
  Result<Id> read_type(const Object& schema, std::string_view type, const Path& path,
                       std::size_t nesting);

  Result<const Value*> resolve(std::string_view pointer, const Path& path) const;
  Result<Id> read_reference(const Object& schema, const Value& ref, const Path& path,
                            std::size_t nesting);
  // A schema that is both; `part_path` is where `part` stands.
  Result<Id> read_merged(const Object& base, const Value& part, const Path& part_path,
                         const Path& path, std::size_t nesting);
  Result<Object> merged(const Object& base, const Value& part, const Path& path);
  Result<Object> joined(const Object& a, const Object& b, const Path& path);
  Result<Id> read_all(const Object& schema, const Value& all, const Path& path,
                      std::size_t nesting);
  Result<Id> read_any(const Object& schema, const Value& any, std::string_view key,
                      const Path& path, std::size_t nesting);
  Result<Id> read_constants(const Object& schema, const Path& path);

  // In schema_values.cc: values of one type.
  Result<std::uint32_t> count(const Object& schema, std::string_view key, std::uint32_t otherwise,
                              const Path& path) const;
  Result<std::optional<JsonBound>> bound(const Object& schema, std::string_view key,
                                         std::string_view exclusive_key, int side,
                                         const Path& path) const;
  // The least (side 1) or largest (-1) integer within the bounds.
  Result<std::optional<std::int64_t>> integer_bound(const Object& schema, int side,
                                                    const Path& path) const;
  Result<Id> read_number(const Object& schema, const Path& path);
  Result<Id> read_integer(const Object& schema, const Path& path);
  Result<Id> read_string(const Object& schema, const Path& path);
  Result<Id> read_array(const Object& schema, const Path& path, std::size_t nesting);

  // In schema_objects.cc.
  Result<Id> read_members(const Object& schema, const Path& path, std::size_t nesting);
  Result<Id> read_map(const Object& schema, const Path& path, std::size_t nesting);
  Result<std::vector<std::string>> required_names(const Object& schema, const Path& path) const;
  // The value of a member that `properties` does not name; none where there is to be none.
  Result<std::optional<Id>> read_additional(const Object& schema, bool otherwise, const Path& path,
                                            std::size_t nesting);
  Id members_in_order(const std::vector<Member>& members, std::optional<Id> another);

  GrammarBuilder& builder_;
  JsonText& json_;
  const Value& root_;
  std::string where_;
  std::map<std::string, RuleId> references_;
  std::vector<std::pair<std::string, RuleId>> pending_;
  std::size_t schemas_ = 0;
  std::size_t copied_ = 0;
};

}  // namespace strata
