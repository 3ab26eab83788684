# Proton's functions, as compiled modules call them; those that pass structs or varying arguments are C's alone.
# Generated from cdef.py by `python -m router.binding.generate`: change that file, not this one.

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

cdef extern from *:
    """
    #include <stdbool.h>
    #include <stdint.h>
    #include <sys/types.h>

    typedef uintptr_t pn_connection_t;
    typedef uintptr_t pn_session_t;
    typedef uintptr_t pn_link_t;
    typedef uintptr_t pn_delivery_t;
    typedef uintptr_t pn_transport_t;
    typedef uintptr_t pn_collector_t;
    typedef uintptr_t pn_event_t;
    typedef uintptr_t pn_terminus_t;
    typedef uintptr_t pn_condition_t;
    typedef uintptr_t pn_disposition_t;
    typedef uintptr_t pn_data_t;
    typedef uintptr_t pn_sasl_t;
    typedef uintptr_t pn_logger_t;
    typedef struct pn_bytes_t { size_t size; const char *start; } pn_bytes_t;
    typedef pn_bytes_t pn_delivery_tag_t;

    pn_collector_t pn_collector(void);
    void pn_collector_free(pn_collector_t);
    pn_event_t pn_collector_next(pn_collector_t);
    int pn_event_type(pn_event_t);
    pn_session_t pn_event_session(pn_event_t);
    pn_link_t pn_event_link(pn_event_t);
    pn_delivery_t pn_event_delivery(pn_event_t);

    pn_transport_t pn_transport(void);
    void pn_transport_free(pn_transport_t);
    pn_logger_t pn_transport_logger(pn_transport_t);
    void pn_logger_set_log_sink(pn_logger_t, uintptr_t, intptr_t);
    void pn_transport_set_server(pn_transport_t);
    int pn_transport_bind(pn_transport_t, pn_connection_t);
    int pn_transport_unbind(pn_transport_t);
    void pn_transport_require_auth(pn_transport_t, bool);
    bool pn_transport_is_authenticated(pn_transport_t);
    bool pn_transport_is_encrypted(pn_transport_t);
    const char *pn_transport_get_user(pn_transport_t);
    pn_condition_t pn_transport_condition(pn_transport_t);
    int pn_transport_set_channel_max(pn_transport_t, uint16_t);
    uint16_t pn_transport_get_channel_max(pn_transport_t);
    void pn_transport_set_max_frame(pn_transport_t, uint32_t);
    void pn_transport_set_idle_timeout(pn_transport_t, uint32_t);
    uint32_t pn_transport_get_remote_idle_timeout(pn_transport_t);
    ssize_t pn_transport_capacity(pn_transport_t);
    ssize_t pni_transport_grow_capacity(pn_transport_t, size_t);
    uintptr_t pn_transport_tail(pn_transport_t);
    int pn_transport_process(pn_transport_t, size_t);
    int pn_transport_close_tail(pn_transport_t);
    ssize_t pn_transport_pending(pn_transport_t);
    uintptr_t pn_transport_head(pn_transport_t);
    void pn_transport_pop(pn_transport_t, size_t);
    int pn_transport_close_head(pn_transport_t);
    bool pn_transport_closed(pn_transport_t);
    uint64_t pn_transport_get_frames_input(pn_transport_t);
    uint64_t pn_transport_get_frames_output(pn_transport_t);
    int64_t pn_transport_tick(pn_transport_t, int64_t);
    int pn_do_error(pn_transport_t, const char *, const char *, ...);
    int pn_framing_send_amqp(pn_transport_t, uint16_t, pn_bytes_t);

    pn_sasl_t pn_sasl(pn_transport_t);
    void pn_sasl_allowed_mechs(pn_sasl_t, const char *);
    const char *pn_sasl_get_mech(pn_sasl_t);

    pn_connection_t pn_connection(void);
    void pn_connection_free(pn_connection_t);
    void pn_connection_collect(pn_connection_t, pn_collector_t);
    void pn_connection_open(pn_connection_t);
    void pn_connection_close(pn_connection_t);
    int pn_connection_state(pn_connection_t);
    pn_condition_t pn_connection_condition(pn_connection_t);
    pn_condition_t pn_connection_remote_condition(pn_connection_t);
    void pn_connection_set_container(pn_connection_t, const char *);
    void pn_connection_set_hostname(pn_connection_t, const char *);
    const char *pn_connection_remote_container(pn_connection_t);
    const char *pn_connection_remote_hostname(pn_connection_t);
    pn_data_t pn_connection_offered_capabilities(pn_connection_t);
    pn_data_t pn_connection_desired_capabilities(pn_connection_t);
    pn_data_t pn_connection_properties(pn_connection_t);
    pn_data_t pn_connection_remote_offered_capabilities(pn_connection_t);
    pn_data_t pn_connection_remote_desired_capabilities(pn_connection_t);
    pn_data_t pn_connection_remote_properties(pn_connection_t);

    pn_session_t pn_session(pn_connection_t);
    void pn_session_free(pn_session_t);
    pn_session_t pn_session_head(pn_connection_t, int);
    void pn_session_open(pn_session_t);
    void pn_session_close(pn_session_t);
    int pn_session_state(pn_session_t);
    int pn_session_set_incoming_window_and_lwm(pn_session_t, uint32_t, uint32_t);
    size_t pn_session_incoming_bytes(pn_session_t);
    size_t pn_session_outgoing_bytes(pn_session_t);

    pn_link_t pn_sender(pn_session_t, const char *);
    pn_link_t pn_receiver(pn_session_t, const char *);
    void pn_link_free(pn_link_t);
    pn_link_t pn_link_head(pn_connection_t, int);
    pn_link_t pn_link_next(pn_link_t, int);
    const char *pn_link_name(pn_link_t);
    bool pn_link_is_sender(pn_link_t);
    void *pn_link_get_context(pn_link_t);
    void pn_link_set_context(pn_link_t, void *);
    int pn_link_state(pn_link_t);
    pn_condition_t pn_link_condition(pn_link_t);
    pn_condition_t pn_link_remote_condition(pn_link_t);
    pn_session_t pn_link_session(pn_link_t);
    void pn_link_open(pn_link_t);
    void pn_link_close(pn_link_t);
    void pn_link_detach(pn_link_t);
    pn_terminus_t pn_link_source(pn_link_t);
    pn_terminus_t pn_link_target(pn_link_t);
    pn_terminus_t pn_link_remote_source(pn_link_t);
    pn_terminus_t pn_link_remote_target(pn_link_t);
    pn_data_t pn_link_properties(pn_link_t);
    pn_data_t pn_link_remote_properties(pn_link_t);
    pn_delivery_t pn_link_current(pn_link_t);
    bool pn_link_advance(pn_link_t);
    int pn_link_credit(pn_link_t);
    int pn_link_queued(pn_link_t);
    bool pn_link_get_drain(pn_link_t);
    int pn_link_drained(pn_link_t);
    int pn_link_remote_snd_settle_mode(pn_link_t);
    void pn_link_set_snd_settle_mode(pn_link_t, int);
    void pn_link_set_rcv_settle_mode(pn_link_t, int);
    void pn_link_set_max_message_size(pn_link_t, uint64_t);
    uint64_t pn_link_remote_max_message_size(pn_link_t);
    pn_delivery_t pn_unsettled_head(pn_link_t);
    pn_delivery_t pn_unsettled_next(pn_delivery_t);
    ssize_t pn_link_send(pn_link_t, const char *, size_t);
    void pn_link_flow(pn_link_t, int);
    void pn_link_drain(pn_link_t, int);
    ssize_t pn_link_recv(pn_link_t, char *, size_t);

    int pn_terminus_get_type(pn_terminus_t);
    int pn_terminus_set_type(pn_terminus_t, int);
    const char *pn_terminus_get_address(pn_terminus_t);
    int pn_terminus_set_address(pn_terminus_t, const char *);
    int pn_terminus_set_durability(pn_terminus_t, int);
    int pn_terminus_set_expiry_policy(pn_terminus_t, int);
    int pn_terminus_set_timeout(pn_terminus_t, uint32_t);
    int pn_terminus_get_distribution_mode(pn_terminus_t);
    int pn_terminus_set_distribution_mode(pn_terminus_t, int);
    bool pn_terminus_is_dynamic(pn_terminus_t);
    int pn_terminus_set_dynamic(pn_terminus_t, bool);
    pn_data_t pn_terminus_capabilities(pn_terminus_t);
    pn_data_t pn_terminus_properties(pn_terminus_t);
    pn_data_t pn_terminus_filter(pn_terminus_t);
    pn_data_t pn_terminus_outcomes(pn_terminus_t);
    int pn_terminus_copy(pn_terminus_t, pn_terminus_t);

    pn_delivery_t pn_delivery(pn_link_t, pn_delivery_tag_t);
    pn_delivery_tag_t pn_delivery_tag(pn_delivery_t);
    pn_link_t pn_delivery_link(pn_delivery_t);
    void *pn_delivery_get_context(pn_delivery_t);
    void pn_delivery_set_context(pn_delivery_t, void *);
    pn_disposition_t pn_delivery_local(pn_delivery_t);
    pn_disposition_t pn_delivery_remote(pn_delivery_t);
    uint64_t pn_delivery_remote_state(pn_delivery_t);
    bool pn_delivery_settled(pn_delivery_t);
    size_t pn_delivery_pending(pn_delivery_t);
    bool pn_delivery_partial(pn_delivery_t);
    bool pn_delivery_aborted(pn_delivery_t);
    bool pn_delivery_updated(pn_delivery_t);
    void pn_delivery_update(pn_delivery_t, uint64_t);
    void pn_delivery_clear(pn_delivery_t);
    void pn_delivery_abort(pn_delivery_t);
    void pn_delivery_settle(pn_delivery_t);
    bool pn_delivery_buffered(pn_delivery_t);

    pn_condition_t pn_disposition_condition(pn_disposition_t);
    bool pn_disposition_is_failed(pn_disposition_t);
    void pn_disposition_set_failed(pn_disposition_t, bool);
    bool pn_disposition_is_undeliverable(pn_disposition_t);
    void pn_disposition_set_undeliverable(pn_disposition_t, bool);
    pn_data_t pn_disposition_annotations(pn_disposition_t);

    bool pn_condition_is_set(pn_condition_t);
    const char *pn_condition_get_name(pn_condition_t);
    int pn_condition_set_name(pn_condition_t, const char *);
    const char *pn_condition_get_description(pn_condition_t);
    int pn_condition_set_description(pn_condition_t, const char *);
    int pn_condition_copy(pn_condition_t, pn_condition_t);
    pn_data_t pn_condition_info(pn_condition_t);
    int pn_data_copy(pn_data_t, pn_data_t);
    ssize_t pn_data_encoded_size(pn_data_t);
    """
    Handle pn_collector() noexcept
    void pn_collector_free(Handle) noexcept
    Handle pn_collector_next(Handle) noexcept
    int pn_event_type(Handle) noexcept
    Handle pn_event_session(Handle) noexcept
    Handle pn_event_link(Handle) noexcept
    Handle pn_event_delivery(Handle) noexcept
    Handle pn_transport() noexcept
    void pn_transport_free(Handle) noexcept
    Handle pn_transport_logger(Handle) noexcept
    void pn_logger_set_log_sink(Handle, Handle, intptr_t) noexcept
    void pn_transport_set_server(Handle) noexcept
    int pn_transport_bind(Handle, Handle) noexcept
    int pn_transport_unbind(Handle) noexcept
    void pn_transport_require_auth(Handle, bint) noexcept
    bint pn_transport_is_authenticated(Handle) noexcept
    bint pn_transport_is_encrypted(Handle) noexcept
    const char *pn_transport_get_user(Handle) noexcept
    Handle pn_transport_condition(Handle) noexcept
    int pn_transport_set_channel_max(Handle, uint16_t) noexcept
    uint16_t pn_transport_get_channel_max(Handle) noexcept
    void pn_transport_set_max_frame(Handle, uint32_t) noexcept
    void pn_transport_set_idle_timeout(Handle, uint32_t) noexcept
    uint32_t pn_transport_get_remote_idle_timeout(Handle) noexcept
    Py_ssize_t pn_transport_capacity(Handle) noexcept
    Py_ssize_t pni_transport_grow_capacity(Handle, size_t) noexcept
    Handle pn_transport_tail(Handle) noexcept
    int pn_transport_process(Handle, size_t) noexcept
    int pn_transport_close_tail(Handle) noexcept
    Py_ssize_t pn_transport_pending(Handle) noexcept
    Handle pn_transport_head(Handle) noexcept
    void pn_transport_pop(Handle, size_t) noexcept
    int pn_transport_close_head(Handle) noexcept
    bint pn_transport_closed(Handle) noexcept
    uint64_t pn_transport_get_frames_input(Handle) noexcept
    uint64_t pn_transport_get_frames_output(Handle) noexcept
    int64_t pn_transport_tick(Handle, int64_t) noexcept
    Handle pn_sasl(Handle) noexcept
    void pn_sasl_allowed_mechs(Handle, const char *) noexcept
    const char *pn_sasl_get_mech(Handle) noexcept
    Handle pn_connection() noexcept
    void pn_connection_free(Handle) noexcept
    void pn_connection_collect(Handle, Handle) noexcept
    void pn_connection_open(Handle) noexcept
    void pn_connection_close(Handle) noexcept
    int pn_connection_state(Handle) noexcept
    Handle pn_connection_condition(Handle) noexcept
    Handle pn_connection_remote_condition(Handle) noexcept
    void pn_connection_set_container(Handle, const char *) noexcept
    void pn_connection_set_hostname(Handle, const char *) noexcept
    const char *pn_connection_remote_container(Handle) noexcept
    const char *pn_connection_remote_hostname(Handle) noexcept
    Handle pn_connection_offered_capabilities(Handle) noexcept
    Handle pn_connection_desired_capabilities(Handle) noexcept
    Handle pn_connection_properties(Handle) noexcept
    Handle pn_connection_remote_offered_capabilities(Handle) noexcept
    Handle pn_connection_remote_desired_capabilities(Handle) noexcept
    Handle pn_connection_remote_properties(Handle) noexcept
    Handle pn_session(Handle) noexcept
    void pn_session_free(Handle) noexcept
    Handle pn_session_head(Handle, int) noexcept
    void pn_session_open(Handle) noexcept
    void pn_session_close(Handle) noexcept
    int pn_session_state(Handle) noexcept
    int pn_session_set_incoming_window_and_lwm(Handle, uint32_t, uint32_t) noexcept
    Py_ssize_t pn_session_incoming_bytes(Handle) noexcept
    Py_ssize_t pn_session_outgoing_bytes(Handle) noexcept
    Handle pn_sender(Handle, const char *) noexcept
    Handle pn_receiver(Handle, const char *) noexcept
    void pn_link_free(Handle) noexcept
    Handle pn_link_head(Handle, int) noexcept
    Handle pn_link_next(Handle, int) noexcept
    const char *pn_link_name(Handle) noexcept
    bint pn_link_is_sender(Handle) noexcept
    void *pn_link_get_context(Handle) noexcept
    void pn_link_set_context(Handle, void *) noexcept
    int pn_link_state(Handle) noexcept
    Handle pn_link_condition(Handle) noexcept
    Handle pn_link_remote_condition(Handle) noexcept
    Handle pn_link_session(Handle) noexcept
    void pn_link_open(Handle) noexcept
    void pn_link_close(Handle) noexcept
    void pn_link_detach(Handle) noexcept
    Handle pn_link_source(Handle) noexcept
    Handle pn_link_target(Handle) noexcept
    Handle pn_link_remote_source(Handle) noexcept
    Handle pn_link_remote_target(Handle) noexcept
    Handle pn_link_properties(Handle) noexcept
    Handle pn_link_remote_properties(Handle) noexcept
    Handle pn_link_current(Handle) noexcept
    bint pn_link_advance(Handle) noexcept
    int pn_link_credit(Handle) noexcept
    int pn_link_queued(Handle) noexcept
    bint pn_link_get_drain(Handle) noexcept
    int pn_link_drained(Handle) noexcept
    int pn_link_remote_snd_settle_mode(Handle) noexcept
    void pn_link_set_snd_settle_mode(Handle, int) noexcept
    void pn_link_set_rcv_settle_mode(Handle, int) noexcept
    void pn_link_set_max_message_size(Handle, uint64_t) noexcept
    uint64_t pn_link_remote_max_message_size(Handle) noexcept
    Handle pn_unsettled_head(Handle) noexcept
    Handle pn_unsettled_next(Handle) noexcept
    Py_ssize_t pn_link_send(Handle, const char *, size_t) noexcept
    void pn_link_flow(Handle, int) noexcept
    void pn_link_drain(Handle, int) noexcept
    Py_ssize_t pn_link_recv(Handle, char *, size_t) noexcept
    int pn_terminus_get_type(Handle) noexcept
    int pn_terminus_set_type(Handle, int) noexcept
    const char *pn_terminus_get_address(Handle) noexcept
    int pn_terminus_set_address(Handle, const char *) noexcept
    int pn_terminus_set_durability(Handle, int) noexcept
    int pn_terminus_set_expiry_policy(Handle, int) noexcept
    int pn_terminus_set_timeout(Handle, uint32_t) noexcept
    int pn_terminus_get_distribution_mode(Handle) noexcept
    int pn_terminus_set_distribution_mode(Handle, int) noexcept
    bint pn_terminus_is_dynamic(Handle) noexcept
    int pn_terminus_set_dynamic(Handle, bint) noexcept
    Handle pn_terminus_capabilities(Handle) noexcept
    Handle pn_terminus_properties(Handle) noexcept
    Handle pn_terminus_filter(Handle) noexcept
    Handle pn_terminus_outcomes(Handle) noexcept
    int pn_terminus_copy(Handle, Handle) noexcept
    Handle pn_delivery_link(Handle) noexcept
    void *pn_delivery_get_context(Handle) noexcept
    void pn_delivery_set_context(Handle, void *) noexcept
    Handle pn_delivery_local(Handle) noexcept
    Handle pn_delivery_remote(Handle) noexcept
    uint64_t pn_delivery_remote_state(Handle) noexcept
    bint pn_delivery_settled(Handle) noexcept
    Py_ssize_t pn_delivery_pending(Handle) noexcept
    bint pn_delivery_partial(Handle) noexcept
    bint pn_delivery_aborted(Handle) noexcept
    bint pn_delivery_updated(Handle) noexcept
    void pn_delivery_update(Handle, uint64_t) noexcept
    void pn_delivery_clear(Handle) noexcept
    void pn_delivery_abort(Handle) noexcept
    void pn_delivery_settle(Handle) noexcept
    bint pn_delivery_buffered(Handle) noexcept
    Handle pn_disposition_condition(Handle) noexcept
    bint pn_disposition_is_failed(Handle) noexcept
    void pn_disposition_set_failed(Handle, bint) noexcept
    bint pn_disposition_is_undeliverable(Handle) noexcept
    void pn_disposition_set_undeliverable(Handle, bint) noexcept
    Handle pn_disposition_annotations(Handle) noexcept
    bint pn_condition_is_set(Handle) noexcept
    const char *pn_condition_get_name(Handle) noexcept
    int pn_condition_set_name(Handle, const char *) noexcept
    const char *pn_condition_get_description(Handle) noexcept
    int pn_condition_set_description(Handle, const char *) noexcept
    int pn_condition_copy(Handle, Handle) noexcept
    Handle pn_condition_info(Handle) noexcept
    int pn_data_copy(Handle, Handle) noexcept
    Py_ssize_t pn_data_encoded_size(Handle) noexcept
