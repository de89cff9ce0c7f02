#ifndef BOWLINE_RUNTIME_SERVE_API_ERROR_H_
#define BOWLINE_RUNTIME_SERVE_API_ERROR_H_

#include <string>

namespace bowline::serve {

// An error reply in OpenAI's form.
struct ApiError {
  int status = 400;
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  // the field that is wrong; "" for none
  std::string code;   // "" for none

  std::string Json() const;
};

}  // namespace bowline::serve

#endif  // BOWLINE_RUNTIME_SERVE_API_ERROR_H_
