import type { components, paths } from "./schema";

/** The API's types, by their names in the OpenAPI document. */
export type Schemas = components["schemas"];
export type Activation = Schemas["Activation"];
export type Change = Schemas["Change"];
export type Entry = Schemas["Entry"];
export type Finding = Schemas["Finding"];
export type Host = Schemas["Host"];
export type Plan = Schemas["Plan"];
export type Problem = Schemas["Problem"];
export type Service = Schemas["Service"];
export type ServiceDetail = Schemas["ServiceDetail"];
export type Source = Schemas["Source"];
export type Version = Schemas["Version"];
export type WhoAmI = Schemas["WhoAmI"];
/** Of which services a list is. */
export type ServiceFilter = NonNullable<
  NonNullable<paths["/api/v1/services"]["get"]["parameters"]["query"]>["filter"]
>;
