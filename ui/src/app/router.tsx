import { createBrowserRouter, type RouteObject } from "react-router";
import { Waiting } from "../parts/Loaded";
import { Failed, NotFound } from "./Failed";
import { Root } from "./Root";

/** Pages are loaded when they are first visited. */
const pages: RouteObject[] = [
  { index: true, lazy: () => import("../pages/fleet/FleetPage") },
  { path: "hosts/:host", lazy: () => import("../pages/host/HostPage") },
  { path: "services", lazy: () => import("../pages/services/ServicesPage") },
  {
    path: "services/:service",
    lazy: () => import("../pages/service/ServiceLayout"),
    children: [
      { index: true, lazy: () => import("../pages/service/OverviewTab") },
      { path: "callers", lazy: () => import("../pages/service/edit/CallersTab") },
      { path: "inbound", lazy: () => import("../pages/service/edit/InboundTab") },
      { path: "outbound", lazy: () => import("../pages/service/edit/OutboundTab") },
      { path: "review", lazy: () => import("../pages/service/ReviewTab") },
      { path: "traffic", lazy: () => import("../pages/service/TrafficTab") },
      { path: "endpoints", lazy: () => import("../pages/service/EndpointsTab") },
      { path: "versions", lazy: () => import("../pages/service/VersionsTab") },
      { path: "versions/:number", lazy: () => import("../pages/service/VersionTab") },
      { path: "versions/:number/activate", lazy: () => import("../pages/service/ActivateTab") },
      { path: "diff", lazy: () => import("../pages/service/DiffTab") },
    ],
  },
  { path: "activations/:id", lazy: () => import("../pages/service/ActivationPage") },
  { path: "activity", lazy: () => import("../pages/activity/ActivityPage") },
  { path: "activity/:index", lazy: () => import("../pages/activity/EntryPage") },
  { path: "sources", lazy: () => import("../pages/sources/SourcesPage") },
  { path: "*", Component: NotFound },
];

export const router = createBrowserRouter([
  {
    path: "/",
    Component: Root,
    ErrorBoundary: Failed,
    HydrateFallback: Waiting,
    children: [{ ErrorBoundary: Failed, children: pages }],
  },
]);
