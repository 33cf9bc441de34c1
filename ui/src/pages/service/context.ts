import { useOutletContext } from "react-router";
import type { ServiceDetail } from "../../api/types";

/** The service that the tab is about. */
export const useService = () => useOutletContext<ServiceDetail>();
