//! What a store of an ORM is to the relay: what the store of its database is.

/// Makes a newtype of a database's store a [`Store`](outbox_core::Store) to [`Inspect`](outbox_core::Inspect).
#[doc(hidden)]
#[macro_export]
macro_rules! store_of {
    ($store:ty) => {
        #[outbox_core::async_trait]
        impl outbox_core::Store for $store {
            fn source(&self) -> &str {
                self.0.table().source()
            }

            fn max_claims(&self) -> Option<std::num::NonZeroU32> {
                self.0.max_claims()
            }

            async fn probe(
                &self,
                request: &outbox_core::ProbeRequest,
            ) -> Result<outbox_core::Probed, outbox_core::StoreError> {
                self.0.probe(request).await
            }

            async fn claim(
                &self,
                request: &outbox_core::ClaimRequest,
            ) -> Result<outbox_core::ClaimOutcome, outbox_core::StoreError> {
                self.0.claim(request).await
            }
        }

        #[outbox_core::async_trait]
        impl outbox_core::Inspect for $store {
            async fn pending(
                &self,
                request: &outbox_core::PendingRequest,
            ) -> Result<Vec<outbox_core::OutboxMessage>, outbox_core::StoreError> {
                self.0.pending(request).await
            }
        }
    };
}
