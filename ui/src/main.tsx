import "@mantine/core/styles.css";
import "@mantine/spotlight/styles.css";
import "./app/app.css";
import { MantineProvider } from "@mantine/core";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { setNonce } from "get-nonce";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { RouterProvider } from "react-router";
import { problemOf } from "./api/problem";
import { router } from "./app/router";
import { theme } from "./app/theme";
import { styleNonce } from "./lib/nonce";

setNonce(styleNonce);

const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1000,
      // What was refused is refused again; what could not be reached is asked once more.
      retry: (failures, error) => failures < 1 && problemOf(error).code === "unavailable",
    },
  },
});

const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => styleNonce}>
      <QueryClientProvider client={client}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
