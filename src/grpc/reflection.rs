//! gRPC server reflection, v1 and v1alpha. What is not known is told in the stream, which goes on:
//! clients ask further on the same stream.

use prost_reflect::{DescriptorError, DescriptorPool, FileDescriptor};

/// The descriptors of everything that a server offers.
#[derive(Debug, Clone)]
pub struct Reflection(DescriptorPool);

/// What is asked, in either version.
enum Asked {
    File(String),
    Symbol(String),
    Extension(String, i32),
    Extensions(String),
    Services,
}

/// What is answered, in either version.
enum Answer {
    File(Vec<u8>),
    Extensions(String, Vec<i32>),
    Services(Vec<String>),
}

impl Reflection {
    /// Tells of `pool` and of what `more` encoded sets of files describe.
    ///
    /// # Errors
    /// If a set does not decode.
    pub fn new(pool: &DescriptorPool, more: &[&[u8]]) -> Result<Self, DescriptorError> {
        let mut pool = pool.clone();
        for set in more.iter().copied().chain([
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ]) {
            pool.decode_file_descriptor_set(set)?;
        }
        Ok(Self(pool))
    }

    fn answer(&self, asked: Asked) -> Result<Answer, String> {
        let file = |file: FileDescriptor| Answer::File(file.encode_to_vec());
        let pool = &self.0;
        match asked {
            Asked::File(name) => pool
                .get_file_by_name(&name)
                .map(file)
                .ok_or_else(|| format!("there is no file `{name}`")),
            Asked::Symbol(name) => self
                .holder(&name)
                .map(file)
                .ok_or_else(|| format!("there is no symbol `{name}`")),
            Asked::Extension(of, number) => pool
                .get_message_by_name(&of)
                .and_then(|message| message.get_extension(u32::try_from(number).ok()?))
                .map(|extension| file(extension.parent_file()))
                .ok_or_else(|| format!("there is no extension {number} of `{of}`")),
            Asked::Extensions(of) => {
                let message = pool.get_message_by_name(&of);
                let message = message.ok_or_else(|| format!("there is no message `{of}`"))?;
                let numbers = message.extensions().map(|extension| extension.number());
                let numbers = numbers.filter_map(|number| i32::try_from(number).ok());
                Ok(Answer::Extensions(of, numbers.collect()))
            }
            Asked::Services => {
                let services = pool.services();
                let names = services.map(|service| service.full_name().to_owned());
                Ok(Answer::Services(names.collect()))
            }
        }
    }

    /// The file that declares a symbol: a message, enum, service or extension, or a part of one.
    fn holder(&self, name: &str) -> Option<FileDescriptor> {
        let pool = &self.0;
        let whole = |name: &str| {
            let message = pool.get_message_by_name(name).map(|it| it.parent_file());
            let of_enum = || pool.get_enum_by_name(name).map(|it| it.parent_file());
            let service = || pool.get_service_by_name(name).map(|it| it.parent_file());
            let extension = || pool.get_extension_by_name(name).map(|it| it.parent_file());
            message.or_else(of_enum).or_else(service).or_else(extension)
        };
        let part = || {
            let (above, last) = name.rsplit_once('.')?;
            let in_message = pool.get_message_by_name(above).is_some_and(|message| {
                message.get_field_by_name(last).is_some()
                    || message.oneofs().any(|oneof| oneof.name() == last)
            });
            let in_enum = pool
                .get_enum_by_name(above)
                .is_some_and(|of| of.get_value_by_name(last).is_some());
            let in_service = pool
                .get_service_by_name(above)
                .is_some_and(|service| service.methods().any(|method| method.name() == last));
            (in_message || in_enum || in_service)
                .then(|| whole(above))
                .flatten()
        };
        whole(name).or_else(part)
    }
}

/// The two versions differ in nothing but the package of their messages.
macro_rules! version {
    ($version:ident) => {
        mod $version {
            use futures::{StreamExt as _, stream::BoxStream};
            use tonic::{Code, Request, Response, Status, Streaming};
            use tonic_reflection::pb::$version::{
                ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse,
                ListServiceResponse, ServerReflectionRequest, ServerReflectionResponse,
                ServiceResponse, server_reflection_request::MessageRequest,
                server_reflection_response::MessageResponse,
                server_reflection_server::ServerReflection,
            };

            use super::{Answer, Asked, Reflection};

            fn asked(request: MessageRequest) -> Asked {
                match request {
                    MessageRequest::FileByFilename(name) => Asked::File(name),
                    MessageRequest::FileContainingSymbol(name) => Asked::Symbol(name),
                    MessageRequest::FileContainingExtension(of) => {
                        Asked::Extension(of.containing_type, of.extension_number)
                    }
                    MessageRequest::AllExtensionNumbersOfType(of) => Asked::Extensions(of),
                    MessageRequest::ListServices(_) => Asked::Services,
                }
            }

            fn told(answer: Answer) -> MessageResponse {
                match answer {
                    Answer::File(file) => {
                        MessageResponse::FileDescriptorResponse(FileDescriptorResponse {
                            file_descriptor_proto: vec![file],
                        })
                    }
                    Answer::Extensions(base_type_name, extension_number) => {
                        MessageResponse::AllExtensionNumbersResponse(ExtensionNumberResponse {
                            base_type_name,
                            extension_number,
                        })
                    }
                    Answer::Services(names) => {
                        let service = names.into_iter().map(|name| ServiceResponse { name });
                        MessageResponse::ListServicesResponse(ListServiceResponse {
                            service: service.collect(),
                        })
                    }
                }
            }

            fn refused(code: Code, error_message: String) -> MessageResponse {
                MessageResponse::ErrorResponse(ErrorResponse {
                    error_code: code as i32,
                    error_message,
                })
            }

            #[tonic::async_trait]
            impl ServerReflection for Reflection {
                type ServerReflectionInfoStream =
                    BoxStream<'static, Result<ServerReflectionResponse, Status>>;

                async fn server_reflection_info(
                    &self,
                    requests: Request<Streaming<ServerReflectionRequest>>,
                ) -> Result<Response<Self::ServerReflectionInfoStream>, Status> {
                    let reflection = self.clone();
                    let answers = requests.into_inner().map(move |request| {
                        let request = request?;
                        let message_response = match request.message_request.clone() {
                            None => refused(
                                Code::InvalidArgument,
                                "the request asks for nothing".to_owned(),
                            ),
                            Some(message) => match reflection.answer(asked(message)) {
                                Ok(answer) => told(answer),
                                Err(why) => refused(Code::NotFound, why),
                            },
                        };
                        Ok(ServerReflectionResponse {
                            valid_host: request.host.clone(),
                            original_request: Some(request),
                            message_response: Some(message_response),
                        })
                    });
                    Ok(Response::new(answers.boxed()))
                }
            }
        }
    };
}

version!(v1);
version!(v1alpha);
