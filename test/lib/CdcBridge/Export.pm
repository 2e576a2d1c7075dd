package CdcBridge::Export;

# An outgoing pipeline into files, and what its files say: read, checked line by line, and replayed.
#
#   my $export = CdcBridge::Export->new(postgres => $postgres, tables => '{shop.*}')->setup->start;
#   $export->wait_for_all;                          # all that is committed here is in the files
#   my @records = $export->records;                 # parsed, in order; what no end record stands behind is not there
#   my %rows = $export->replay('shop', 't', 'id');  # key -> row, as the changes leave it
#   $export->is_replayed('shop', 't', 'id', 'name of the test');

use strict;
use warnings;

use CdcBridge::Env qw(new_folder poll_until);
use JSON::PP ();
use Test::Builder;

# name, server, tables (the text of the array), options (jsonb text), server_options
sub new
{
	my ($class, %option) = @_;
	return bless { name => 'shop_out', server => 'files', tables => '{shop.*}', options => undef, server_options => '', dir => new_folder('export'), %option }, $class;
}

sub name { return $_[0]{name}; }
sub folder { return "$_[0]{dir}/$_[0]{name}"; }
sub quote { my ($text) = @_; $text =~ s/'/''/g; return "'$text'"; }

sub setup
{
	my ($self) = @_;
	my $conf = $self->{postgres}->psql("select current_setting('output_plugin_libraries', true)");
	if ($conf ne '')
	{
		$self->{postgres}->psql("alter system set output_plugin_libraries = $conf, cdc_bridge");
		$self->{postgres}->psql('select pg_reload_conf()');
		$self->{postgres}->poll('show output_plugin_libraries', qr/cdc_bridge/) or die "the list of output plugins does not change\n";
	}
	$self->{postgres}->psql("set client_min_messages = warning; create extension if not exists cdc_bridge;
		" . $self->_make_server);
	return $self;
}

sub _make_server
{
	my ($self) = @_;
	return "create server $self->{server} foreign data wrapper cdc_file options (directory " . quote($self->{dir}) . "$self->{server_options})";
}

sub start
{
	my ($self) = @_;
	my $options = defined $self->{options} ? ', options => ' . quote($self->{options}) : '';
	$self->{postgres}->psql('select cdc_start_pipeline(' . quote($self->{name})
		. ($self->{created}++ ? '' : ", sink => '$self->{server}', tables => " . quote($self->{tables}) . $options) . ')');
	return $self;
}

sub stop
{
	my ($self) = @_;
	$self->{postgres}->psql('select cdc_stop_pipeline(' . quote($self->{name}) . ')');
	$self->{postgres}->poll("select count(*) from pg_stat_cdc_export where pipeline = " . quote($self->{name}) . ' and pid is not null', '0')
	  or die "the export worker does not leave\n" . $self->describe;
	return $self;
}

sub drop
{
	my ($self) = @_;
	$self->{postgres}->psql('select cdc_drop_pipeline(' . quote($self->{name}) . ')');
	delete $self->{created};
	return $self;
}

# One column of the view; '' when there is no such pipeline or it is null.
sub status
{
	my ($self, $column) = @_;
	my ($status, $out) = $self->{postgres}->try_psql("select $column from pg_stat_cdc_export where pipeline = " . quote($self->{name}));
	return $status == 0 ? $out : '';
}

sub wait_for_status
{
	my ($self, $column, $pattern, $seconds) = @_;
	return $self if poll_until(sub { return $self->status($column) =~ $pattern; }, $seconds);
	die "pipeline $self->{name}: $column did not become $pattern\n" . $self->describe;
}

sub wait_for_state { return $_[0]->wait_for_status('state', qr/^\Q$_[1]\E$/, $_[2]); }

# Wait until all that has been committed by now is in the files.
sub wait_for_all
{
	my ($self, $seconds) = @_;
	# a commit of our own, so that the log is flushed up to there also when others committed asynchronously; one that wrote nothing before its
	# commit record would be asynchronous itself
	my $lsn = $self->{postgres}->psql("begin; select pg_create_restore_point('all'), pg_current_xact_id(); commit; select pg_current_wal_lsn()");
	$lsn =~ s/.*\n//s;
	return $self if $self->{postgres}->poll(
		"select decoded_lsn >= '$lsn' and pid is not null from pg_stat_cdc_export where pipeline = " . quote($self->{name}), 't', $seconds);
	die "pipeline $self->{name} did not come to $lsn\n" . $self->describe;
}

sub describe
{
	my ($self) = @_;
	my (undef, $view) = $self->{postgres}->try_psql("\\x on\n\\pset format unaligned\n\\t off\nselect * from pg_stat_cdc_export where pipeline = " . quote($self->{name}));
	return "$view\n-- server log\n" . $self->{postgres}->log_tail;
}

# The files, oldest first.
sub files
{
	my ($self) = @_;
	my @files = sort(glob($self->folder . '/changes-*.jsonl'));
	return @files;
}

# Take in what has come since the last time: lines behind which an end record stands. Such a piece never changes any more.
sub _read_on
{
	my ($self) = @_;
	my $json = JSON::PP->new->utf8;
	for my $file ($self->files)
	{
		open(my $in, '<:raw', $file) or die "$file: $!\n";
		seek($in, $self->{read}{$file} // 0, 0);
		my @open;
		while (my $line = <$in>)
		{
			last if $line !~ /\n\z/;    # being written
			if ($line =~ /^\{"cdc_bridge":\{"end":"([0-9A-F]+)\/([0-9A-F]+)"/)
			{
				push @{ $self->{ends} }, (hex($1) << 32) + hex($2);
				push @{ $self->{records} }, map { $json->decode($_) } splice(@open);
				$self->{read}{$file} = tell($in);
			}
			else { push @open, $line; }
		}
	}
	return;
}

sub records
{
	my ($self) = @_;
	$self->_read_on;
	return @{ $self->{records} // [] };
}

# Rows as the changes leave them, by the text of their key. Dies when a change does not fit what was there before: a row that is
# inserted twice, or changed or deleted without being there, is one that was lost or doubled. With {upserts} all that is taken: a receiver that never
# got what became a dead letter sees such changes.
sub replay
{
	my ($self, $schema, $table, @key) = @_;
	my $state = $self->{replayed}{"$schema.$table"} //= { at => 0, rows => {} };
	my $rows = $state->{rows};
	my $key = sub { my ($row) = @_; return join('|', map { $row->{$_} // '' } @key); };
	$self->_read_on;
	while (my $record = ($self->{records} // [])->[ $state->{at}++ ])
	{
		next if ($record->{source}{schema} // '') ne $schema || ($record->{source}{table} // '') ne $table;
		next if $record->{tableChanges};
		my ($op, $before, $after) = @$record{qw(op before after)};
		if ($op eq 't') { %$rows = (); next; }
		# a row of the initial copy is one that was not there before, as one that is inserted
		if ($op eq 'c' || $op eq 'r')
		{
			die "$op of what is there: " . $key->($after) . "\n" if $rows->{ $key->($after) } && !$self->{upserts};
			$rows->{ $key->($after) } = $after;
			next;
		}
		my $old = $key->($before // $after);
		die "$op of what is not there: $old\n" unless $rows->{$old} || $self->{upserts};
		my $row = delete $rows->{$old};
		next if $op eq 'd';
		# what an update did not touch stays
		$rows->{ $key->($after) } = { map { $_ => ($after->{$_} // '') eq '__debezium_unavailable_value' ? $row->{$_} : $after->{$_} } keys %$after };
	}
	$state->{at}--;
	return %$rows;
}

# Are the rows that the files lead to those of the table?
sub is_replayed
{
	my ($self, $schema, $table, $key, $name) = @_;
	my $test = Test::Builder->new;
	my $json = JSON::PP->new->canonical;
	my @key = split(/,/, $key);
	my %rows = eval { $self->replay($schema, $table, @key) };
	return $test->ok(0, $name) || $test->diag($@) if $@;
	my $select = join(" || '|' || ", map { "$_\::text" } @key);
	my %there = map { split(/\t/, $_, 2) } split(/\n/, $self->{postgres}->psql("select $select || E'\\t' ||
		(select jsonb_object_agg(key, value)::text from jsonb_each_text(to_jsonb(t))) from $schema.$table t"));
	my @differ = grep {
		my $row = defined $there{$_} ? JSON::PP->new->utf8->decode($there{$_}) : undef;
		# a row of before a column was added does not have it
		!$rows{$_} || !$row || _text({ (map { $_ => undef } keys %$row), %{ $rows{$_} } }) ne _text($row);
	} keys %{ { %rows, %there } };
	return $test->ok(1, "$name (" . keys(%there) . ' rows)') unless @differ;
	$test->ok(0, $name);
	$test->diag(scalar(@differ) . " rows differ; key $_: files " . (defined $rows{$_} ? _text($rows{$_}) : 'none') . ', table ' . ($there{$_} // 'none')) for $differ[0];
	return 0;
}

sub _text
{
	my ($row) = @_;
	my $text = sub {
		my ($value) = @_;
		return 'NULL' unless defined $value;
		return $value ? 'true' : 'false' if JSON::PP::is_bool($value);
		return ref $value ? JSON::PP->new->canonical->encode($value) : $value;
	};
	return join(', ', map { "$_=" . $text->($row->{$_}) } sort keys %$row);
}

1;
