// What `strata show` says of a model, as one JSON object.
#pragma once

#include <boost/json.hpp>

#include "gguf/manifest.h"

namespace strata::apps {

// Values are as the file has them, whatever their type; bytes that are not UTF-8 become U+FFFD, and
// floats that are not finite become strings. Keys that the file lacks are left out.
boost::json::object describe(const ModelManifest& manifest, bool with_tensors);

// Every key of the file, by its name; lists only `with_lists`, else null.
boost::json::object metadata_json(const ModelManifest& manifest, bool with_lists);

}  // namespace strata::apps
